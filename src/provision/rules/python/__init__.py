"""Rules for Python versions."""
