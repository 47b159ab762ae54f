"""Colab: runtimes that are allocated for one run and released."""
