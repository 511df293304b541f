"""The writers of scripts/generate, a module for each kind of file. Each takes the headers and returns text."""
