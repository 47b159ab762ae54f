"""Tiny training runs that prove training, checkpoints and resume; offline and seeded."""
