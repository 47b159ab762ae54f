"""The kind `workbench`: an instance of Vertex AI Workbench."""

from collections.abc import Iterator, Mapping

from provision.diagnostics import Route
from provision.facts import Facts
from provision.facts.lazy_tables import load_zones
from provision.facts.machines import (
    MachineOffer,
    cheapest_offer,
    find_cpu_machines,
    find_machines,
    list_offers,
    region_of,
)
from provision.facts.schema_platforms import ImageFamily, MachineType, split_image_name
from provision.field_types import parse_size
from provision.kinds.base import (
    NOT_SUPPORTED_YET,
    STARTER_REGION,
    Capacity,
    Gpu,
    Kind,
    ProvidedSoftware,
    ProvidedVersion,
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
from provision.kinds.places import Place, place_word
from provision.kinds.settings import LargerMachine, StarterField
from provision.kinds.shared_refusals import refuse_cuda_toolkit
from provision.kinds.workbench_fields import WorkbenchTarget
from provision.kinds.workbench_replacement import find_replaced_fields

_ANY_INSTANCE = {"project": "my-project", "zones": ["us-central1-a"], "nat": True}
"""Fields of a place that say nothing about what its machine can run."""
_DEFAULT_CARD = "L4"
"""The card of the place that files are checked for. Our choice: the cheapest with bf16."""
_IMAGE_KINDS = ("workbench", "dlvm")
_OFFERED = ("offered", "reservation")
_REFERENCE = "{secret: projects/PROJECT/secrets/NAME/versions/1}"


class Workbench(Kind):
    """Instances of Vertex AI Workbench, made from an image on a machine type."""

    name = "workbench"
    model = WorkbenchTarget
    driver = "provision.targets.workbench.driver:WorkbenchDriver"
    rules = ("provision.rules.workbench", "provision.rules.cost", "provision.rules.network")
    lock_fields = ("image",)
    secret_sources = frozenset({"secret"})
    reference_hint = f"store it in Secret Manager: {_REFERENCE}"
    runs_code = True
    installs_origins = True

    def starter_fields(self, gpu: Gpu, facts: Facts, *, conda: bool) -> Mapping[str, StarterField]:  # noqa: ARG002
        """Return names to replace, and zones, a machine type and an image for the GPU."""
        zones, machine, region = _starter_machine(gpu, facts)
        image = facts.newest_workbench_image()
        price = f"the cheapest in {region}" if machine != "auto" else ""
        if price and not gpu.is_none:
            price += " with this GPU"
        account = "trainer@my-project.iam.gserviceaccount.com"
        return {
            "project": StarterField("my-project", "yours"),
            "zones": StarterField(zones, "tried in this order"),
            "machine_type": StarterField(machine, price),
            "image": StarterField(image.family, "the newest image in this family"),
            "bucket": StarterField(
                "gs://my-bucket/provision", "yours, for the startup script and the report"
            ),
            "service_account": StarterField(account, "yours"),
            "nat": StarterField(True, "packages are downloaded through Cloud NAT"),
            "idle_shutdown": StarterField("60m"),
            "max_lifetime": StarterField("8h"),
        }

    def provides(
        self, target: WorkbenchTarget, route: Route, facts: Facts, *, gpu: bool
    ) -> ProvidedSoftware:
        """Return the family of the image and its versions; nothing without a known image."""
        family, day = split_image_name(target.image or "")
        image = facts.images.get(family)
        if image is None:
            return ProvidedSoftware()
        route, provider = (*route, "image"), f"image {target.image}"
        driver = glibc = python = None
        dated = facts.image_driver(family, day) if day else None
        if gpu and dated is not None:
            driver = ProvidedVersion(dated.driver, provider, route, dated.evidence)
        elif gpu and image.driver:
            driver = ProvidedVersion(image.driver, provider, route, image.evidence)
        system = facts.systems.get(image.os)
        if system is not None:
            distribution = f"{provider} ({image.os})"
            glibc = ProvidedVersion(system.glibc, distribution, route, system.evidence)
        if image.python:
            python = ProvidedVersion(image.python, provider, route, image.evidence)
        return ProvidedSoftware(image, None, driver, glibc, python)

    def capacity(self, resource: Resource, target: TargetFacts, facts: Facts) -> Capacity | None:
        """Return the RAM of the machine type, its share for /dev/shm, or the data disk."""
        own = target.target
        assert isinstance(own, WorkbenchTarget)  # noqa: S101
        if resource == "disk":
            default = facts.limits["data disk"]
            size = own.data_disk.size
            count = parse_size(size) if size else default.value * 10**9
            return Capacity(count, "the data disk", (*target.route, "data_disk"), default.evidence)
        reserved = own.reservation is not None
        machine = find_largest_machine(own.machine_type, target, facts, reserved=reserved)
        if machine is None:
            return None
        ram, route = machine.ram_gb * 2**30, (*target.route, "machine_type")
        if resource == "ram":
            return Capacity(ram, machine.name, route, machine.evidence)
        share = facts.limits["shm share"]
        return Capacity(ram * share.value, machine.name, route, share.evidence)

    def chosen_target(
        self, target: TargetFacts, ram_gib: float | None, facts: Facts
    ) -> TargetModel:
        """Return a target with the machine type that `auto` stands for in the first zone."""
        own = target.target
        assert isinstance(own, WorkbenchTarget)  # noqa: S101
        name = resolve_machine_type(
            *(own.machine_type, region_of(own.zones[0]), ram_gib, target, facts),
            reserved=own.reservation is not None,
        )
        return own.model_copy(update={"machine_type": name})

    def machine_offer(self, target: TargetFacts, facts: Facts) -> MachineOffer | None:
        """Return the machine with its price in the region of the first zone."""
        own = target.target
        assert isinstance(own, WorkbenchTarget)  # noqa: S101
        return find_offer(own.machine_type, region_of(own.zones[0]), target, facts)

    def replaced_fields(
        self, before: TargetFacts, after: TargetFacts, facts: Facts
    ) -> tuple[str, ...]:
        """Return the changed fields for which `apply` replaces the instance."""
        old, new = before.target, after.target
        assert isinstance(old, WorkbenchTarget)  # noqa: S101
        assert isinstance(new, WorkbenchTarget)  # noqa: S101
        return tuple(find_replaced_fields(old, new, facts))

    def machine_with_ram(
        self, ram_gib: float, target: TargetFacts, facts: Facts
    ) -> LargerMachine | None:
        """Return a machine type with the GPUs, or of the same family without one."""
        own = target.target
        assert isinstance(own, WorkbenchTarget)  # noqa: S101
        reserved = own.reservation is not None
        return find_machine_with_ram(ram_gib, own.machine_type, target, facts, reserved=reserved)

    def places(self, facts: Facts) -> Iterator[Place]:
        """Yield a place for each card that Workbench offers, with the newest image and others."""
        images = [row for row in facts.images.values() if row.kind in _IMAGE_KINDS and row.python]
        own = (row for row in images if row.kind == self.name and not row.legacy)
        newest = max(own, key=lambda row: row.released)
        cards = [card for card in facts.cards if card.workbench and card.status in _OFFERED]
        for card in (None, *cards):
            name, gpu = f"workbench-{place_word(card)}", card.name if card else "none"
            for suffix, image in (("", newest), *((f"@{row.family}", row) for row in images)):
                yield Place(
                    name + suffix,
                    _describe_place(gpu, image),
                    {"kind": self.name, **_ANY_INSTANCE, "image": image.family},
                    gpu,
                    image.python,
                    torch=image.torch,
                    is_default=gpu == _DEFAULT_CARD and not suffix,
                )

    def refusals(
        self, target: TargetFacts, fields: TargetFields, facts: Facts
    ) -> Iterator[Refusal]:
        """Yield the fields without effect and what an instance cannot have or reach."""
        own, route = target.target, target.route
        assert isinstance(own, WorkbenchTarget)  # noqa: S101
        yield from super().refusals(target, fields, facts)
        yield from _unsupported_fields(own, target, fields)
        gpu = target.gpu_settings.gpu
        if not gpu.is_none and (target.card is None or not target.card.workbench):
            offered = (
                card.name for card in facts.cards if card.workbench and card.status == "offered"
            )
            yield Refusal(
                target.gpu_settings.gpu_route,
                f"Workbench does not offer {gpu.type}",
                f"use one of {', '.join(offered)}, or set `gpu: none`",
                rule="GCP004",
            )
        if own.bucket is None:
            yield Refusal(
                (*route, "bucket"),
                "`bucket` is not set, but the instance needs a bucket for its startup script "
                "and report",
                "create a bucket (gcloud storage buckets create gs://NAME "
                f"--location={region_of(own.zones[0])}) and set `bucket: gs://NAME/provision`",
                rule="GCP021",
            )
        if own.subnet is not None and len({region_of(zone) for zone in own.zones}) > 1:
            yield Refusal(
                (*route, "zones"),
                "a subnet belongs to one region, but the zones are in several",
                "use zones in one region",
                rule="GCP008",
            )


def _describe_place(gpu: str, image: ImageFamily) -> str:
    card = "without a GPU" if gpu == "none" else f"with {gpu}"
    torch = f", torch {image.torch}" if image.torch else ""
    return f"Workbench {card}, image {image.family} (Python {image.python}{torch})"


def _starter_machine(gpu: Gpu, facts: Facts) -> tuple[list[str], str, str]:
    """Return zones that have a GPU, the cheapest machine type there or `auto`, and the region."""
    region, zones = STARTER_REGION, [f"{STARTER_REGION}-a", f"{STARTER_REGION}-b"]
    card = None if gpu.is_none else facts.card(gpu.type)
    machines: tuple[MachineType, ...] = find_cpu_machines(facts) if gpu.is_none else ()
    if card is not None:
        rows = {row.region: list(row.zones) for row in load_zones() if row.card == card.name}
        known = {name: zones for name, zones in rows.items() if zones}
        if known and STARTER_REGION not in rows:
            region = next(iter(known))
        zones = known.get(region, zones)
        machines = find_machines(facts, card, gpu.count, reserved=False)
    offer = cheapest_offer(list_offers(machines, card, gpu.count), region)
    return zones, offer.machine.name if offer else "auto", region


def _unsupported_fields(
    own: WorkbenchTarget, target: TargetFacts, fields: TargetFields
) -> Iterator[Refusal]:
    yield from refuse_cuda_toolkit(
        fields, "an instance", "remove the field; the image has its own toolkit", rule="GCP024"
    )
    if own.managed_euc:
        yield Refusal(
            target.route_to("managed_euc"),
            "with managed end user credentials, the service may silently drop the startup script "
            "that creates the environment",
            "remove `managed_euc`",
            rule="GCP012",
        )
    if own.image is not None and ("/" in own.image or ":" in own.image):
        yield Refusal(
            target.route_to("image"),
            f"container images are {NOT_SUPPORTED_YET}",
            "use a virtual machine image, such as workbench-instances-2603",
            rule="GCP024",
        )
    for name, sources in fields.secrets.items():
        if "secret" not in sources:
            yield Refusal(
                target.secret_route(name),
                "an instance reads secrets only from Secret Manager",
                f"use {_REFERENCE}",
                rule="GCP023",
            )
