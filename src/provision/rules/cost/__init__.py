"""Rules for cost."""

KINDS = frozenset({"workbench"})
