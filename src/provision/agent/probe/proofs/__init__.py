"""Tiny training runs that prove a stack trains, checkpoints and resumes; made offline, seeded, a
second each.
"""
