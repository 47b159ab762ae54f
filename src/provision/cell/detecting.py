"""Where this runs: Colab, Colab Enterprise, Workbench, another Jupyter, or no kernel at all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from enum import Enum

_HOSTNAME = "/var/colab/hostname"


class Place(str, Enum):
    """A place, by the words that a person knows it by."""

    COLAB = "Google Colab"
    ENTERPRISE = "Colab Enterprise"
    WORKBENCH = "Vertex AI Workbench"
    JUPYTER = "a Jupyter kernel"
    PYTHON = "Python without a kernel"

    @property
    def is_colab(self) -> bool:
        """Whether its kernel is Colab's."""
        return self in (Place.COLAB, Place.ENTERPRISE)


def detect(environ: Mapping[str, str], modules: Collection[str], exists: Callable[[str], bool], in_kernel: bool) -> Place:
    """Return the place. Sources: googlecolab/colabtools `_resource_monitor.py` and the variables of Vertex AI's images.

    Vertex is asked first: Colab Enterprise has Colab's modules and files too.
    """
    product = environ.get("VERTEX_PRODUCT", "")
    if product == "COLAB_ENTERPRISE":
        return Place.ENTERPRISE
    if product == "WORKBENCH_INSTANCE":
        return Place.WORKBENCH
    if "COLAB_RELEASE_TAG" in environ or "google.colab" in modules or exists(_HOSTNAME):
        return Place.COLAB
    return Place.JUPYTER if in_kernel else Place.PYTHON
