"""A locked environment as a document of another tool, one format a file: values into text."""

MADE_BY = "Made by `provision export"
"""Stands near the beginning of every document, so that one of ours is told from another's."""
