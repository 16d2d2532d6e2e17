# Maps from id to slot, for other native modules: nothing here is for Python.
