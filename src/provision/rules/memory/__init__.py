"""Rules for memory and disk."""
