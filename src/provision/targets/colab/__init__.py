"""Colab runtimes: the cell that makes an environment there, the notebook around it, and what is
refused.
"""

from provision.targets.colab.driver import (
    NOTEBOOK_PART,
    ColabDriver,
    ColabObservation,
    describe_kept_copy,
)
from provision.targets.colab.github_link import build_colab_link
from provision.targets.colab.rendered_files import RenderedFiles, render_files
from provision.targets.colab.sessions import SESSION_PART, get_sessions_folder

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
