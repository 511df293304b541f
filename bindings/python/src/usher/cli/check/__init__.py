"""``usher check``: the statements of docs/protocol.md, asked of a head-end."""
