"""The kind `colab-enterprise`: a runtime template of Colab Enterprise."""

from collections.abc import Iterator, Mapping
from typing import Literal

from pydantic import Field

from provision.facts import Facts
from provision.facts.machines import MachineOffer
from provision.field_types import Duration, Size, StrictModel, parse_duration
from provision.kinds.base import (
    NOT_SUPPORTED_YET,
    STARTER_REGION,
    Capacity,
    Gpu,
    Kind,
    Refusal,
    Resource,
    TargetFacts,
    TargetFields,
    TargetModel,
)
from provision.kinds.machine_types import (
    find_largest_machine,
    find_machine_with_ram,
    find_offer,
    resolve_machine_type,
)
from provision.kinds.settings import LargerMachine, StarterField
from provision.kinds.shared_refusals import refuse_cuda_toolkit, refuse_disk_size

_IMMUTABLE = (
    "project",
    "region",
    "machine_type",
    "data_disk",
    "network",
    "subnet",
    "internet",
    "idle_shutdown",
    "end_user_credentials",
    "secure_boot",
    "reservation",
)
"""Fields that no update of a template changes. Source: aiplatform v1 discovery document,
notebookRuntimeTemplates.patch.
"""
_DISK_GB = (10, 65536)
"""Sizes of a data disk (Terraform, google_colab_runtime_template)."""


class DataDisk(StrictModel):
    """The data disk of a runtime."""

    size: Size = "100GiB"
    """Size."""
    type: Literal["standard", "ssd", "balanced", "extreme"] = "standard"
    """Type of Persistent Disk."""


class ColabEnterpriseTarget(TargetModel):
    """A Colab Enterprise runtime template."""

    kind: Literal["colab-enterprise"]
    project: str
    """Google Cloud project."""
    region: str
    """Region, such as us-central1."""
    machine_type: str = "auto"
    """Machine type, or `auto`: the existing one while it fits, else the cheapest that fits."""
    isolation: Literal["system", "venv"] = "system"
    """Install on top of the runtime's packages (system), or in a separate environment (venv)."""
    data_disk: DataDisk = DataDisk.model_construct()
    """Data disk; the boot disk (100 GB, SSD) cannot be chosen."""
    network: str | None = None
    """VPC network; default: a network that Google manages."""
    subnet: str | None = None
    """Subnet in the region."""
    internet: bool = True
    """Give runtimes access to the internet."""
    idle_shutdown: Duration | None = "3h"
    """Stop a runtime after this time without use, from 10m to 24h; null never stops it."""
    end_user_credentials: bool = False
    """Let notebooks run with their user's credentials."""
    secure_boot: bool = False
    """Start only signed software."""
    reservation: str | None = Field(
        default=None, examples=["projects/my-project/zones/us-central1-a/reservations/mine"]
    )
    """Reservation to use, by its full name."""
    bucket: str | None = Field(default=None, pattern=r"^gs://[a-z0-9][a-z0-9._-]{2,}(/.*)?$")
    """Folder in Cloud Storage for the notebook that verifies the template, and its report."""
    service_account: str | None = None
    """Email address of the service account that runs this notebook."""
    max_duration: Duration = "1h"
    """Time after which the service ends this notebook."""


class ColabEnterprise(Kind):
    """Runtime templates of Colab Enterprise."""

    name = "colab-enterprise"
    model = ColabEnterpriseTarget
    driver = "provision.targets.colab_enterprise.driver:ColabEnterpriseDriver"
    rules = ("provision.rules.colab_enterprise", "provision.rules.cost")

    def starter_fields(self, gpu: Gpu, facts: Facts, *, conda: bool) -> Mapping[str, StarterField]:  # noqa: ARG002
        """Return a project and a region to replace."""
        return {
            "project": StarterField("my-project", "yours"),
            "region": StarterField(STARTER_REGION, "yours"),
        }

    def capacity(self, resource: Resource, target: TargetFacts, facts: Facts) -> Capacity | None:
        """Return the RAM of the machine type; nothing is published about its other resources."""
        own = target.target
        assert isinstance(own, ColabEnterpriseTarget)  # noqa: S101
        reserved = own.reservation is not None
        machine = find_largest_machine(own.machine_type, target, facts, reserved=reserved)
        if resource != "ram" or machine is None:
            return None
        route = (*target.route, "machine_type")
        return Capacity(machine.ram_gb * 2**30, machine.name, route, machine.evidence)

    def chosen_target(
        self, target: TargetFacts, ram_gib: float | None, facts: Facts
    ) -> TargetModel:
        """Return a target with the machine type that `auto` stands for."""
        own = target.target
        assert isinstance(own, ColabEnterpriseTarget)  # noqa: S101
        name = resolve_machine_type(
            *(own.machine_type, own.region, ram_gib, target, facts),
            reserved=own.reservation is not None,
        )
        return own.model_copy(update={"machine_type": name})

    def machine_offer(self, target: TargetFacts, facts: Facts) -> MachineOffer | None:
        """Return the machine with its price, which is Compute Engine's times an assumed factor."""
        own = target.target
        assert isinstance(own, ColabEnterpriseTarget)  # noqa: S101
        offer = find_offer(own.machine_type, own.region, target, facts)
        factor = facts.conditions["enterprise price"]
        if offer is None:
            return None
        return offer._replace(dollars=offer.dollars * float(factor.value), evidence=factor.evidence)

    def replaced_fields(
        self,
        before: TargetFacts,
        after: TargetFacts,
        facts: Facts,  # noqa: ARG002
    ) -> tuple[str, ...]:
        """Return the changed fields for which `apply` replaces the template."""
        old, new = before.target, after.target
        fields = [name for name in _IMMUTABLE if getattr(old, name) != getattr(new, name)]
        if before.gpu_settings.gpu != after.gpu_settings.gpu:
            fields.append("gpu")
        return tuple(fields)

    def machine_with_ram(
        self, ram_gib: float, target: TargetFacts, facts: Facts
    ) -> LargerMachine | None:
        """Return a machine type with the GPUs, or of the same family without one."""
        own = target.target
        assert isinstance(own, ColabEnterpriseTarget)  # noqa: S101
        reserved = own.reservation is not None
        return find_machine_with_ram(ram_gib, own.machine_type, target, facts, reserved=reserved)

    def refusals(
        self, target: TargetFacts, fields: TargetFields, facts: Facts
    ) -> Iterator[Refusal]:
        """Yield fields without effect, and machines that a template cannot describe."""
        own = target.target
        assert isinstance(own, ColabEnterpriseTarget)  # noqa: S101
        yield from super().refusals(target, fields, facts)
        gpu = target.gpu_settings.gpu
        if not gpu.is_none and (target.card is None or not target.card.workbench):
            cards = facts.conditions["enterprise cards"].value.split()
            yield Refusal(
                target.gpu_settings.gpu_route,
                f"Colab Enterprise does not offer {gpu.type}",
                f"use one of {', '.join(cards)}, or set `gpu: none`",
            )
        yield from refuse_cuda_toolkit(fields, "a runtime", "remove the field")
        for name in fields.secrets:
            yield Refusal(
                target.secret_route(name),
                f"secrets on a Colab Enterprise runtime are {NOT_SUPPORTED_YET}",
                f"set secrets: {{{name}: null}} for this target, and read the secret from "
                "Secret Manager in the notebook",
                rule="SEC004",
            )
        yield from _limit_refusals(own, target, facts)
        if (own.bucket is None) != (own.service_account is None):
            name = "bucket" if own.bucket is not None else "service_account"
            yield Refusal(
                target.route_to(name),
                "executing a notebook requires both a bucket and a service account",
                "set `bucket` and `service_account`, or remove both; without them, the "
                "template is not verified",
            )
        if own.subnet is not None and own.network is None:
            yield Refusal(
                target.route_to("subnet"), "`subnet` requires `network`", "also set `network`"
            )


def _limit_refusals(
    own: ColabEnterpriseTarget, target: TargetFacts, facts: Facts
) -> Iterator[Refusal]:
    least, most = (facts.limits[f"{word} idle"].value for word in ("shortest", "longest"))
    if own.idle_shutdown is not None:
        seconds = parse_duration(own.idle_shutdown)
        if not least * 60 <= seconds <= most * 60 or seconds % 60:
            yield Refusal(
                target.route_to("idle_shutdown"),
                f"`idle_shutdown: {own.idle_shutdown}` is not a whole number of minutes from "
                f"{least:g} to {most:g}",
                f"set a time from {least:g}m to {most / 60:g}h, or to null",
            )
    yield from refuse_disk_size(target, "data_disk", own.data_disk.size, _DISK_GB)
