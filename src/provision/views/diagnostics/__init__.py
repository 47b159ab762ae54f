"""Diagnostics as text, JSON, SARIF and annotations."""
