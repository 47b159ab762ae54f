"""The kind `colab-enterprise`: a runtime of Colab Enterprise."""

from collections.abc import Mapping
from typing import Literal

from provision.facts import Facts
from provision.kinds.base import STARTER_REGION, Gpu, Kind, StarterField, TargetModel


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

    def starter_fields(self, gpu: Gpu, facts: Facts, *, conda: bool) -> Mapping[str, StarterField]:  # noqa: ARG002
        """Return a project and a region to replace."""
        return {
            "project": StarterField("my-project", "yours"),
            "region": StarterField(STARTER_REGION, "yours"),
        }
