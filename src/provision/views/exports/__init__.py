"""A locked environment as documents of other tools, one format a file."""

MADE_BY = "Made by `provision export"
"""Is near the beginning of every document, and identifies it as ours."""
