"""The kind `colab-enterprise`: a runtime of Colab Enterprise."""

from typing import Literal

from provision.kinds.base import Kind, TargetModel


class ColabEnterpriseTarget(TargetModel):
    """A Colab Enterprise runtime."""

    kind: Literal["colab-enterprise"]
    project: str
    """Google Cloud project."""
    region: str
    """Region, as in us-central1."""
    machine_type: str = "auto"
    """Machine type, or auto for the cheapest that fits."""
    isolation: Literal["system", "venv"] = "system"
    """Install on top of the runtime's packages (system), or in a separate environment (venv)."""


class ColabEnterprise(Kind):
    """Runtimes of Colab Enterprise; this version checks and locks them only."""

    name = "colab-enterprise"
    model = ColabEnterpriseTarget
    rules = ("provision.rules.colab_enterprise",)
