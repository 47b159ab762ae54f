"""The kinds of target: one declaration for each.

A new kind is a module here, a line in `KINDS`, and a driver of the same name in `targets/`.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Union

from pydantic import Field

from provision.kinds.base import Kind
from provision.kinds.colab import Colab, ColabTarget
from provision.kinds.colab_enterprise import ColabEnterprise, ColabEnterpriseTarget
from provision.kinds.local import Local, LocalTarget
from provision.kinds.target_model import Gpu, Requires, TargetModel
from provision.kinds.workbench import Disk, Workbench, WorkbenchTarget

KINDS: Mapping[str, Kind] = {
    kind.name: kind for kind in (Local(), Colab(), ColabEnterprise(), Workbench())
}

if TYPE_CHECKING:
    Target = TargetModel
else:
    Target = Annotated[
        Union[tuple(kind.model for kind in KINDS.values())],  # noqa: UP007 - built at run time
        Field(discriminator="kind"),
    ]

__all__ = [
    "KINDS",
    "ColabEnterpriseTarget",
    "ColabTarget",
    "Disk",
    "Gpu",
    "Kind",
    "LocalTarget",
    "Requires",
    "Target",
    "TargetModel",
    "WorkbenchTarget",
    "kind_of",
]


def kind_of(target: TargetModel) -> Kind:
    """Return the declaration of a target's kind."""
    return KINDS[target.kind]
