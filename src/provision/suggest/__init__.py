"""Searches for specs that every rule accepts."""
