"""Tools for testing players and the library itself: the reference head-end and pytest fixtures."""
