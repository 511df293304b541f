"""How the package talks to libusher.so: the C declarations, the loader, and the entries behind C's ``user_data``.

``abi`` and ``enums`` are generated from the headers. ``ffi`` loads the library; ``registry`` maps the numbers that C
keeps as ``user_data`` to Python objects.
"""
