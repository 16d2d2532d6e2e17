# Maps made at once, for other native modules: nothing here is for Python.
