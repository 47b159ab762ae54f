"""Rules for the training that a spec declares."""
