"""The production scheduler under a virtual clock, on logs of real clusters or made ones."""
