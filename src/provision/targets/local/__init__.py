"""The driver of local environments."""
