"""Rules for network access."""
