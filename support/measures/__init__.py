"""Measures of the structure of a source tree, for support/structure.py."""
