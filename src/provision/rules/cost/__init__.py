"""Rules for cost."""
