"""Jobs on their way into a store: nothing of it is Python's."""
