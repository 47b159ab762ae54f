"""Watches a program from outside while it runs, and writes down what it took: RAM, shared memory,
cards, how it ended. Never in the program's way.
"""
