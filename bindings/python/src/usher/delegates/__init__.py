"""Licence delegates, one module for each kind: they decide how the library asks for licences.

Public names: import them from usher.
"""
