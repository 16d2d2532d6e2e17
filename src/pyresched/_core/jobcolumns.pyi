"""Columns of jobs: nothing of it is Python's."""
