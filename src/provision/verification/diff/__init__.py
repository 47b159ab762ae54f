"""Compares two reports."""
