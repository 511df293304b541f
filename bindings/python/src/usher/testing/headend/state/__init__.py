"""What the head-end knows and decides: accounts, tokens, keys, rights and sessions."""
