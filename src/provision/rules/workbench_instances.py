"""The Workbench instances of a spec, the machine types that fit them, and an example that rules
about them start from.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

from provision.diagnostics import Applicability, Fix, Route
from provision.facts import Card, Facts
from provision.facts.machines import find_machines
from provision.facts.schema_platforms import MachineType
from provision.kinds import WorkbenchTarget
from provision.kinds.target_model import MAX_GPUS
from provision.rules.package_lines import set_field_edit, yaml_scalar
from provision.rules.rule import LintContext
from provision.target_facts import TargetFacts

RESOURCE_NAME_PATTERN = r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?"
"""How most names of Compute Engine are written, 1 to 63 characters (compute.v1 discovery document,
Tags.items and Network.name; RFC 1035).
"""
UNAVAILABLE_STATUS = {
    "retired": "is no longer given to new machines",
    "removed": "is no longer there",
}
"""Status of a card that Workbench has no more, in words."""
EXAMPLE_IMAGE = "workbench-instances-2603-20261004-2157-rc0"
EXAMPLE_TARGET = (
    "kind: workbench, project: my-project, zones: [us-central1-a], bucket: "
    "gs://my-bucket/provision, nat: true, "
    "service_account: trainer@my-project.iam.gserviceaccount.com, max_lifetime: 8h"
)
"""A Workbench target as examples have it when its place does not matter."""
_SAMPLE = {
    "zones": "[us-central1-a]",
    "machine_type": "g2-standard-8",
    "image": EXAMPLE_IMAGE,
    "bucket": "gs://my-bucket/provision",
    "nat": "true",
    "service_account": "trainer@my-project.iam.gserviceaccount.com",
    "max_lifetime": "8h",
}


class Instance(NamedTuple):
    """A Workbench target with what is known of its place."""

    site: TargetFacts
    target: WorkbenchTarget

    def route(self, *parts: str | int) -> Route:
        """Return the route of one of the target's fields."""
        return (*self.site.route, *parts)

    @property
    def reserved(self) -> bool:
        """Whether its machine comes out of a reservation."""
        return self.target.reservation is not None


def workbench_instances(case: LintContext) -> Iterator[Instance]:
    """Yield every Workbench target."""
    for site in case.targets:
        if isinstance(site.target, WorkbenchTarget):
            yield Instance(site, site.target)


def newest_image_family(facts: Facts) -> str:
    """Return the family of Workbench's images that came last."""
    return max(
        (
            image
            for image in facts.images.values()
            if image.kind == "workbench" and not image.legacy
        ),
        key=lambda image: image.released,
    ).family


def available_gpu_counts(facts: Facts, card: Card, *, reserved: bool) -> tuple[int, ...]:
    """Return how many cards of a kind one Workbench instance can have."""
    return tuple(
        count
        for count in range(1, MAX_GPUS + 1)
        if find_machines(facts, card, count, reserved=reserved)
    )


def nearest_machine(machines: tuple[MachineType, ...], to: MachineType) -> MachineType | None:
    """Return the machine whose vCPUs, and then whose memory for each of them, are nearest; the
    larger one of two.
    """
    return min(
        machines,
        key=lambda one: (
            abs(one.vcpus - to.vcpus),
            -one.vcpus,
            abs(one.ram_gb / one.vcpus - to.ram_gb / to.vcpus),
        ),
        default=None,
    )


def set_field_fix(case: LintContext, route: Route, text: str) -> Fix:
    """Return the fix that gives a field of the spec another value, whether it was written or left
    out; `text` true and false are truth values.
    """
    absent = case.source.text(route) is None
    edited = (
        text
        if text in ("true", "false")
        else yaml_scalar(text, plain=absent or case.source.is_plain(route))
    )
    return Fix(
        f"write {route[-1]}: {text}" if absent else f"write {text}",
        (set_field_edit(case, route, edited),),
        Applicability.UNSAFE,
    )


def example_spec(top: str = "gpu: L4\n", **fields: str | None) -> str:
    """Return a spec with one Workbench instance that is as it should be, some of its fields given
    another value (None: left out).
    """
    given = {"kind": "workbench", "project": "my-project", **_SAMPLE, **fields}
    lines = "".join(f"    {key}: {value}\n" for key, value in given.items() if value is not None)
    return f'{top}python: "3.12"\npackages: [torch]\ntargets:\n  wb:\n{lines}'


def format_list(words: Iterator[str] | tuple[str, ...], most: int = 4) -> str:
    """Return words as people list them, at most `most` of them."""
    all_of = tuple(words)
    return ", ".join(all_of[:most]) + (
        f" and {len(all_of) - most} more" if len(all_of) > most else ""
    )


def json_quote(value: str) -> str:
    """Return a value as JSON writes it, for a message."""
    return json.dumps(value, ensure_ascii=False)
