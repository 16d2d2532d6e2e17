"""A store that is filled at once: nothing of it is Python's."""
