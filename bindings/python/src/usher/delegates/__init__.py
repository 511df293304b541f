"""Licence delegates, one module for each kind: they say how the library asks for licences.

Public names: import them from usher.
"""
