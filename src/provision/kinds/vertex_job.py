"""The kind `vertex-job`: a custom job of Vertex AI on one or several machines."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from provision.facts import Facts
from provision.facts.job_machines import (
    choose_job_machine,
    find_job_machines,
    price_in_job,
)
from provision.facts.machines import MachineOffer
from provision.facts.schema_platforms import MachineType
from provision.field_types import (
    Duration,
    ShorthandModel,
    Size,
    StrictModel,
    parse_duration,
)
from provision.kinds.base import (
    LINUX,
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
from provision.kinds.machine_types import find_offer, find_smallest_machine
from provision.kinds.settings import LargerMachine, StarterField
from provision.kinds.shared_refusals import refuse_cuda_toolkit, refuse_disk_size

MOST_REPLICAS = 64
"""Most machines of a job. Our choice: a proof of more machines was never measured."""
MOST_RESTARTS = 5
"""Most restarts of a worker (Vertex AI documentation, Understand the training service)."""
_FLEX_START_LIMIT_S = 7 * 86400
"""Longest job with flex start (Vertex AI documentation, Schedule training jobs)."""
_DISK_GB = (100, 64000)
"""Sizes of a boot disk (aiplatform v1, DiskSpec.bootDiskSizeGb)."""
_HYPERDISK_MACHINES = ("a3-ultragpu-8g", "a4-highgpu-8g")
"""Machine types with this type of disk only (aiplatform v1, DiskSpec.bootDiskType)."""
_NETWORK = re.compile(r"projects/[0-9]+/global/networks/[a-z][a-z0-9-]*")
_REGISTRY = re.compile(r"docker\.io|[a-z0-9-]+-docker\.pkg\.dev|([a-z]+\.)?gcr\.io")
"""Vertex AI documentation, Create a custom container image for training; Create training pipelines
has images at gcr.io.
"""
_STARTER_IMAGE = "docker.io/library/python@sha256:" + 64 * "0"
_BUCKET = re.compile(r"gs://[a-z0-9][a-z0-9._-]{2,}(/.*)?")


def _check_buckets(value: Any) -> Any:
    """Check both forms at once: pydantic would report each problem for both."""
    values = list(value.values()) if isinstance(value, dict) else [value]
    if not values or not all(isinstance(uri, str) and _BUCKET.fullmatch(uri) for uri in values):
        raise PydanticCustomError(
            "job_bucket",
            "expected a folder in Cloud Storage, such as gs://my-bucket/provision (a bucket name "
            "has 3 to 63 characters), or a mapping from regions to such folders",
        )
    return value


Buckets = Annotated[str | dict[str, str], BeforeValidator(_check_buckets)]


class JobCapacity(ShorthandModel):
    """Source of a job's machines: `standard`, `spot`, or one of the keys below."""

    strategy: Literal["standard", "spot"] = "standard"
    """On demand (standard), or from spare capacity that can be reclaimed at any time (spot)."""
    flex_start: Duration | None = None
    """Wait at most this time until all machines are available at once (flex start)."""
    reservation: str | None = Field(
        default=None, examples=["projects/my-project/zones/us-central1-a/reservations/mine"]
    )
    """Reservation to use, by its full name."""
    persistent_resource: str | None = None
    """Existing persistent resource to run on."""

    @model_validator(mode="before")
    @classmethod
    def _from_short(cls, value: Any) -> Any:
        return {"strategy": value} if isinstance(value, str) else value


class JobDisk(StrictModel):
    """The boot disk of each machine of a job."""

    size: Size = "100GiB"
    """Size."""
    type: Literal["ssd", "standard", "hyperdisk-balanced"] = "ssd"
    """Type of Persistent Disk or Hyperdisk."""


class VertexJobTarget(TargetModel):
    """A custom job of Vertex AI."""

    kind: Literal["vertex-job"]
    project: str
    """Google Cloud project."""
    regions: list[str] = Field(min_length=1)
    """Regions, in the order in which they are tried."""
    bucket: Buckets
    """Folder in Cloud Storage for the programs of the job, its reports and the wheels of locks: one
    for a single region, or one for each region.
    """
    image: str
    """Container image by its digest (NAME@sha256:...), with python3 3.10 or newer."""
    environment: Literal["install", "baked"] = "install"
    """Source of the packages: the machines install the locked ones (install), or the python3 of the
    image has them, and they are only checked (baked).
    """
    replicas: int = Field(default=1, ge=1, le=MOST_REPLICAS)
    """Number of machines; `gpu.count` is the number of GPUs in each of them."""
    machine_type: str = "auto"
    """Machine type, or `auto` for the cheapest one that fits."""
    capacity: JobCapacity = JobCapacity.model_construct()
    """Source of the machines."""
    boot_disk: JobDisk = JobDisk.model_construct()
    """Boot disk of each machine."""
    max_duration: Duration = "1h"
    """Time after which the service ends a job, that of a verification or of `run`."""
    restarts: int = Field(default=0, ge=0, le=MOST_RESTARTS)
    """Number of times that a program of `run` goes on after a machine was lost or its processes
    failed. It has to resume from its own checkpoint in `paths.checkpoints` or `paths.output`.
    """
    service_account: str | None = None
    """Email address of the service account that the job runs as; default: the service's own."""
    network: str | None = Field(
        default=None, examples=["projects/123456789/global/networks/my-network"]
    )
    """VPC network for peering, by its full name with the number of the project."""

    def bucket_in(self, region: str) -> str:
        """Return the folder for a region, without a slash at its end; "" if it is not declared."""
        uri = self.bucket if isinstance(self.bucket, str) else self.bucket.get(region, "")
        return uri.rstrip("/")


class VertexJob(Kind):
    """Custom jobs of Vertex AI."""

    name = "vertex-job"
    model = VertexJobTarget
    driver = "provision.targets.vertex_job.driver:VertexJobDriver"
    rules = ("provision.rules.vertex_job", "provision.rules.cost")
    runs_code = True
    secret_sources = frozenset({"secret"})
    reference_hint = "`secret: projects/PROJECT/secrets/NAME/versions/VERSION`"

    def starter_fields(self, gpu: Gpu, facts: Facts, *, conda: bool) -> Mapping[str, StarterField]:  # noqa: ARG002
        """Return a project, a region, a bucket and an image to replace."""
        return {
            "project": StarterField("my-project", "yours"),
            "regions": StarterField([STARTER_REGION], "yours"),
            "bucket": StarterField("gs://my-bucket/provision", "yours"),
            "image": StarterField(_STARTER_IMAGE, "an image with Python, by its digest"),
        }

    def capacity(self, resource: Resource, target: TargetFacts, facts: Facts) -> Capacity | None:
        """Return the RAM of the machine type; nothing is published about its other resources."""
        machine = _find_machine(get_job(target), target, facts)
        if resource != "ram" or machine is None:
            return None
        route = target.route_to("machine_type")
        return Capacity(machine.ram_gb * 2**30, machine.name, route, machine.evidence)

    def chosen_target(
        self, target: TargetFacts, ram_gib: float | None, facts: Facts
    ) -> TargetModel:
        """Return a target with the machine type that `auto` stands for."""
        own, count = get_job(target), target.gpu_settings.gpu.count
        if own.machine_type != "auto":
            return own
        chosen = choose_job_machine(facts, target.card, count, own.regions[0], ram_gib).machine
        name = own.machine_type if chosen is None else chosen.name
        return own.model_copy(update={"machine_type": name})

    def machine_offer(self, target: TargetFacts, facts: Facts) -> MachineOffer | None:
        """Return one machine with its price in a job."""
        own = get_job(target)
        offer = find_offer(own.machine_type, own.regions[0], target, facts)
        return None if offer is None else price_in_job(offer, facts)

    def machine_with_ram(
        self, ram_gib: float, target: TargetFacts, facts: Facts
    ) -> LargerMachine | None:
        """Return the smallest machine type of jobs with the GPUs."""
        machines = find_job_machines(facts, target.card, target.gpu_settings.gpu.count)
        return find_smallest_machine(machines, ram_gib)

    def refusals(
        self, target: TargetFacts, fields: TargetFields, facts: Facts
    ) -> Iterator[Refusal]:
        """Yield fields without effect, and jobs that the service cannot create."""
        own = get_job(target)
        yield from super().refusals(target, fields, facts)
        yield from refuse_cuda_toolkit(
            fields,
            "the machines of a job",
            "remove the field, and use an image that contains the toolkit",
        )
        if fields.system_packages:
            yield Refusal(
                ("system_packages",),
                f"installing system packages on the machines of a job is {NOT_SUPPORTED_YET}",
                "remove the field, and use an image that contains them",
            )
        yield from _image_refusals(own, target)
        yield from _gpu_refusals(target)
        yield from _bucket_refusals(own, target)
        yield from _capacity_refusals(own, target, facts)
        yield from _network_refusals(own, target, facts)
        yield from self._disk_refusals(own, target, facts)

    def _disk_refusals(
        self, own: VertexJobTarget, target: TargetFacts, facts: Facts
    ) -> Iterator[Refusal]:
        yield from refuse_disk_size(target, "boot_disk", own.boot_disk.size, _DISK_GB)
        chosen = self.chosen_target(target, None, facts)
        machine_type = getattr(chosen, "machine_type", "")
        if machine_type in _HYPERDISK_MACHINES and own.boot_disk.type != "hyperdisk-balanced":
            yield Refusal(
                target.route_to("boot_disk"),
                f"the boot disk of {machine_type} must be of type hyperdisk-balanced",
                "set `boot_disk: {type: hyperdisk-balanced}`",
            )


def get_job(target: TargetFacts) -> VertexJobTarget:
    """Return the fields of a target of this kind."""
    own = target.target
    assert isinstance(own, VertexJobTarget)  # noqa: S101
    return own


def _find_machine(own: VertexJobTarget, target: TargetFacts, facts: Facts) -> MachineType | None:
    """Return the machine type, for `auto` the one with the most RAM that it may choose."""
    if own.machine_type != "auto":
        return facts.machines.get(own.machine_type)
    machines = find_job_machines(facts, target.card, target.gpu_settings.gpu.count)
    return max(machines, key=lambda machine: machine.ram_gb, default=None)


def _image_refusals(own: VertexJobTarget, target: TargetFacts) -> Iterator[Refusal]:
    host = own.image.partition("/")[0] if "/" in own.image else ""
    # As Docker reads names: without a dot or a port it is a repository of Docker Hub.
    if ("." in host or ":" in host) and not _REGISTRY.fullmatch(host):
        yield Refusal(
            target.route_to("image"),
            f"jobs cannot use images of {host}: Vertex AI pulls from Artifact Registry and Docker "
            "Hub only",
            "copy the image to Artifact Registry, or use one of Docker Hub",
        )


def _gpu_refusals(target: TargetFacts) -> Iterator[Refusal]:
    gpu, card = target.gpu_settings.gpu, target.card
    if gpu.is_none:
        return
    if card is None or not card.vertex:
        why = f"jobs of Vertex AI do not offer {gpu.type}"
    elif card.host not in ("", *LINUX):
        why = f"{gpu.type} on machines with {card.host} is {NOT_SUPPORTED_YET}"
    else:
        return
    yield Refusal(
        target.gpu_settings.gpu_route, why, "use another GPU, such as L4, or set `gpu: none`"
    )


def _bucket_refusals(own: VertexJobTarget, target: TargetFacts) -> Iterator[Refusal]:
    route = target.route_to("bucket")
    for region in own.regions:
        if not own.bucket_in(region):
            yield Refusal(
                route,
                f"`bucket` has no folder for the region {region}",
                f"add `{region}: gs://BUCKET/FOLDER`, with a bucket in this region",
            )
    if isinstance(own.bucket, dict):
        for region in own.bucket.keys() - set(own.regions):
            yield Refusal(
                (*route, region),
                f"{region} is not one of the target's `regions`",
                "remove it, or add the region to `regions`",
            )


def _network_refusals(own: VertexJobTarget, target: TargetFacts, facts: Facts) -> Iterator[Refusal]:
    if own.network is None:
        return
    route = target.route_to("network")
    if not _NETWORK.fullmatch(own.network):
        yield Refusal(
            route,
            f"`network: {own.network}` is not the full name of a network with a project number",
            "write projects/NUMBER/global/networks/NAME; `gcloud projects describe PROJECT` prints "
            "the number",
        )
    names = facts.job_properties["peering exceptions"].value.split()
    if target.card is not None and target.card.name in names:
        yield Refusal(
            route,
            f"VPC Network Peering is not possible for jobs with {', '.join(names)}",
            "remove `network`",
        )


def _capacity_refusals(
    own: VertexJobTarget, target: TargetFacts, facts: Facts
) -> Iterator[Refusal]:
    capacity = own.capacity
    ways = (capacity.flex_start, capacity.reservation, capacity.persistent_resource)
    if sum(way is not None for way in ways) + (capacity.strategy == "spot") > 1:
        yield Refusal(
            target.route_to("capacity"),
            "`capacity` has more than one of spot, `flex_start`, `reservation` and "
            "`persistent_resource`",
            "keep one of them",
        )
    if own.capacity.flex_start is None:
        return
    route = target.route_to("capacity", "flex_start")
    names = facts.job_properties["flex start GPUs"].value.split()
    if target.card is None or target.card.name not in names:
        yield Refusal(
            route,
            f"flex start requires one of the GPUs {', '.join(names)}",
            "use one of them, or `capacity: standard`",
        )
    if parse_duration(own.max_duration) > _FLEX_START_LIMIT_S:
        yield Refusal(
            target.route_to("max_duration"),
            "a job with flex start can last at most 7 days",
            "set `max_duration` to at most 168h",
        )
