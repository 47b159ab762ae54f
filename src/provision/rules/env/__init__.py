"""Rules for environment variables."""
