"""The state of the head-end, and its decisions: accounts, tokens, keys, rights and sessions."""
