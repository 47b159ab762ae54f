"""Shared code of the scripts that remake fact tables: package index, wheels and table layout."""
