"""Machines of Colab by card and shape."""

from provision.kinds.colab import find_shape

__all__ = ["find_shape"]
