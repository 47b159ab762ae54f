"""Conda: solving, installing and finding environments."""
