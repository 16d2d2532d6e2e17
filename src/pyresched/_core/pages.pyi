# Paged arrays, for other native modules: nothing here is for Python.
