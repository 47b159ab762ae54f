"""Rules for network access."""

KINDS = frozenset({"workbench"})
