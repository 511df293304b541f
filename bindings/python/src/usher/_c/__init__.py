"""The modules with which the package calls libusher.so: the C declarations, the loader of the library, and the Python
objects that C's ``user_data`` identifies.

``abi`` and ``enums`` are generated from the headers. ``ffi`` loads the library; ``registry`` maps the numbers that C
keeps as ``user_data`` to Python objects.
"""
