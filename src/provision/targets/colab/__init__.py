"""Colab runtimes: the cell that makes an environment there, the notebook around it, and what is refused."""

from provision.targets.colab.kind import PART, Colab, Have
from provision.targets.colab.link import link_to
from provision.targets.colab.rendering import Rendered, rendered

__all__ = ["PART", "Colab", "Have", "Rendered", "link_to", "rendered"]
