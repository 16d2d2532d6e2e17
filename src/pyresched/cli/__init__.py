"""The command line: what a person types, turned into calls, and results into text.

Owns exit codes and everything that is printed. 0: done; 2: something that the user wrote
cannot be used, one line on stderr says what; 130: interrupted, nothing half done is left.
"""
