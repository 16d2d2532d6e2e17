"""Many queued jobs leased at once: nothing of it is Python's."""
