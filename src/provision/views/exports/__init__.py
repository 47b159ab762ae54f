"""A locked environment as documents of other tools, one format a file."""

MADE_BY = "Made by `provision export"
"""Near the beginning of every document, so that it can be recognized."""
