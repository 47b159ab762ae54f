"""Differences of reports and of locks as text and HTML."""
