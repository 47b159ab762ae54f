"""Colab runtimes: the cell that makes an environment there, and the notebook around it."""
