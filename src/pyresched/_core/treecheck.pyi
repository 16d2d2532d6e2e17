# The checker of B+trees, for other native modules: nothing here is for Python.
