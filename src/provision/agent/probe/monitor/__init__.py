"""Watches a program from outside: RAM, shared memory, cards, and how it ended."""

SCHEMA = "provision.run/1"
"""The form of a record."""
