"""Colab runtimes: the cell that makes an environment there, the notebook around it, and what is refused."""

from provision.targets.colab.kind import PART, Colab, Have, copy_kept
from provision.targets.colab.leaving import SESSION, sessions_folder
from provision.targets.colab.link import link_to
from provision.targets.colab.rendering import Rendered, rendered

__all__ = ["PART", "SESSION", "Colab", "Have", "Rendered", "copy_kept", "link_to", "rendered", "sessions_folder"]
