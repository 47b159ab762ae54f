"""Explains error messages with the facts, the lock and reports."""
