"""Rules for Colab runtimes."""

KINDS = frozenset({"colab"})
