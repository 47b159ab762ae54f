"""Rules for packages and their indexes."""
