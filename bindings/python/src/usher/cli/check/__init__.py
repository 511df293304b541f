"""``usher check``: checks whether a head-end keeps the statements of docs/protocol.md."""
