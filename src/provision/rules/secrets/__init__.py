"""Rules for secrets."""
