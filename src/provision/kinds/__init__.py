"""The kinds of target: one declaration for each, and the registry that lists them."""

from contextvars import ContextVar
from dataclasses import dataclass

from provision.kinds.base import Gpu, Kind, MachineRequirements, TargetModel
from provision.kinds.colab import Colab, ColabTarget
from provision.kinds.colab_enterprise import ColabEnterprise, ColabEnterpriseTarget
from provision.kinds.local import Local, LocalTarget
from provision.kinds.workbench import Disk, Workbench, WorkbenchTarget

__all__ = [
    "REGISTRY",
    "ColabEnterpriseTarget",
    "ColabTarget",
    "Disk",
    "Gpu",
    "Kind",
    "LocalTarget",
    "MachineRequirements",
    "Registry",
    "TargetModel",
    "WorkbenchTarget",
    "registry_in_use",
]


@dataclass(frozen=True)
class Registry:
    """The kinds of target that a spec may name, in the order in which messages list them.

    The first kind owns every recorded part that no other kind claims.
    """

    kinds: tuple[Kind, ...]

    def find(self, name: object) -> Kind | None:
        """Return the kind with a name, None if there is none."""
        return next((kind for kind in self.kinds if kind.name == name), None)

    def kind_of(self, target: TargetModel) -> Kind:
        """Return the declaration of a target's kind."""
        return next(kind for kind in self.kinds if kind.name == target.kind)


REGISTRY = Registry((Local(), Colab(), ColabEnterprise(), Workbench()))
"""The kinds of this version."""

registry_in_use: ContextVar[Registry] = ContextVar("registry_in_use", default=REGISTRY)
"""The registry of this run, set once by the entry point; read where no spec is loaded yet."""
