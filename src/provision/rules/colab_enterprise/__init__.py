"""Rules for Colab Enterprise runtimes."""

KINDS = frozenset({"colab-enterprise"})
