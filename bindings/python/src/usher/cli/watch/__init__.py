"""``usher watch``: the state of a reference head-end, live in the terminal."""
