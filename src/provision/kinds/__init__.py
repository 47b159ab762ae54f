"""Declarations of the kinds of target."""
