"""Rules for declared paths."""
