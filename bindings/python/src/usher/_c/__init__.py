"""The modules with which the package calls libusher.so: the C declarations, the code that loads the library, and the
table of the Python objects that C identifies by ``user_data``.

``abi`` and ``enums`` are generated from the headers. ``ffi`` loads the library; ``registry`` maps the numbers that C
keeps as ``user_data`` to Python objects.
"""
