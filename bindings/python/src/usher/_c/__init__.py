"""How the package calls libusher.so: the C declarations, the loader, and the Python objects behind C's ``user_data``.

``abi`` and ``enums`` are generated from the headers. ``ffi`` loads the library; ``registry`` maps the numbers that C
keeps as ``user_data`` to Python objects.
"""
