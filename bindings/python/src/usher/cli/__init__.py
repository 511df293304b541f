"""``usher``, the command. ``registry`` lists the sub-commands; each of them has a file of its own in ``commands``."""
