"""What `gates.py` measures and how: inputs that are fresh each time, turns that alternate."""
