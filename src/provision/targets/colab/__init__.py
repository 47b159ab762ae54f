"""Colab runtimes: the cell that makes an environment there, the notebook around it, and what is refused."""

from provision.targets.colab.kind import NOTEBOOK_PART, ColabDriver, ColabObservation, describe_kept_copy
from provision.targets.colab.leaving import SESSION_PART, get_sessions_folder
from provision.targets.colab.link import build_colab_link
from provision.targets.colab.rendering import RenderedFiles, render_files

__all__ = [
    "NOTEBOOK_PART",
    "SESSION_PART",
    "ColabDriver",
    "ColabObservation",
    "RenderedFiles",
    "build_colab_link",
    "describe_kept_copy",
    "get_sessions_folder",
    "render_files",
]
