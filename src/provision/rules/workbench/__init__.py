"""Rules for Workbench targets."""

KINDS = frozenset({"workbench"})
