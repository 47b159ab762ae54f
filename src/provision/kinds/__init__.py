"""The kinds of target: one declaration for each, and the list of them."""

from contextvars import ContextVar

from provision.kinds.base import Gpu, Kind, Registry, TargetModel
from provision.kinds.colab import Colab, ColabTarget
from provision.kinds.colab_enterprise import ColabEnterprise, ColabEnterpriseTarget
from provision.kinds.local import Local, LocalTarget
from provision.kinds.settings import MachineRequirements
from provision.kinds.vertex_job import VertexJob, VertexJobTarget
from provision.kinds.workbench import Workbench
from provision.kinds.workbench_fields import Disk, WorkbenchTarget

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
    "VertexJobTarget",
    "WorkbenchTarget",
    "registry_in_use",
]


REGISTRY = Registry((Local(), Colab(), ColabEnterprise(), VertexJob(), Workbench()))
"""The kinds of this version."""

registry_in_use: ContextVar[Registry] = ContextVar("registry_in_use", default=REGISTRY)
"""The registry of this run, set once by the entry point; read where no spec is loaded yet."""
