"""Colab runtimes: the cell that sets up an environment, and its notebook."""
