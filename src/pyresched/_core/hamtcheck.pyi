# The checker of maps, for other native modules: nothing here is for Python.
