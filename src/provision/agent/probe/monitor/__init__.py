"""Watches a program from outside: RAM, shared memory, cards, and how it ended."""
