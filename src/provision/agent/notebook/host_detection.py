"""Detects the host: Colab, Colab Enterprise, Workbench, another Jupyter, or no kernel."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from enum import Enum

_HOSTNAME = "/var/colab/hostname"


class Host(str, Enum):
    """A host, by the name that people know."""

    COLAB = "Google Colab"
    ENTERPRISE = "Colab Enterprise"
    WORKBENCH = "Vertex AI Workbench"
    JUPYTER = "a Jupyter kernel"
    PYTHON = "Python without a kernel"

    @property
    def is_colab(self) -> bool:
        """Return whether its kernel is Colab's."""
        return self in (Host.COLAB, Host.ENTERPRISE)


def detect_host(
    environ: Mapping[str, str],
    modules: Collection[str],
    exists: Callable[[str], bool],
    in_kernel: bool,
) -> Host:
    """Return the host. Sources: colabtools `_resource_monitor.py`, variables of Vertex AI's images.

    Vertex is checked first: Colab Enterprise has Colab's modules and files too.
    """
    product = environ.get("VERTEX_PRODUCT", "")
    if product == "COLAB_ENTERPRISE":
        return Host.ENTERPRISE
    if product == "WORKBENCH_INSTANCE":
        return Host.WORKBENCH
    if "COLAB_RELEASE_TAG" in environ or "google.colab" in modules or exists(_HOSTNAME):
        return Host.COLAB
    return Host.JUPYTER if in_kernel else Host.PYTHON
