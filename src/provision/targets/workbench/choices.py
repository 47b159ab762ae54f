"""Choices for an instance: machine type with its price, and image."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from provision.facts import Card, Facts
from provision.facts.machines import (
    MachineOffer,
    cheapest_offer,
    choose_machine_type,
    list_offers,
)
from provision.facts.schema_platforms import MachineType, split_image_name
from provision.field_types import parse_size
from provision.spec import Spec


class MachineChoice(NamedTuple):
    """A machine type with its price in the first zone's region; or a problem.

    `cheaper` is a machine that costs less than the one that an existing instance keeps.
    """

    machine_type: str
    offer: MachineOffer | None = None
    problem: str = ""
    cheaper: MachineOffer | None = None

    @property
    def price(self) -> str:
        """The price as text, with its date."""
        return "price unknown" if self.offer is None else format_price(self.offer)

    @property
    def notes(self) -> tuple[str, ...]:
        """The note about a cheaper machine; () if there is none."""
        if self.cheaper is None or self.offer is None:
            return ()
        name, saved = self.cheaper.machine.name, self.offer.dollars - self.cheaper.dollars
        note = f"cheaper: {name} fits too and costs ${saved:.2f} per hour less"
        return (f"{note}; `machine_type: {name}` changes to it",)


def format_price(offer: MachineOffer) -> str:
    """Return the hourly price of a machine, with its date."""
    read = offer.evidence.as_of
    return f"${offer.dollars:.2f} per hour in {offer.region} ({read}), without disks and traffic"


def choose_machine(
    spec: Spec,
    machine_type: str,
    region: str,
    facts: Facts,
    card: Card | None,
    *,
    reserved: bool,
    existing: str = "",
) -> MachineChoice:
    """Return the named machine type, else ("auto") the cheapest with the GPUs and the memory.

    With "auto", `existing` is the machine type that was chosen before. It stays as long as it has
    the GPUs and the memory: a new price is not a reason to stop an instance.
    """
    cards = spec.gpu.count if card else 0
    if machine_type != "auto":
        named = facts.machines.get(machine_type)
        offers = list_offers((named,), card, cards) if named else ()
        return MachineChoice(machine_type, cheapest_offer(offers, region) if offers else None)
    required = parse_size(spec.requires.ram) / 2**30 if spec.requires.ram else None
    selection = choose_machine_type(facts, card, cards, region, required, reserved=reserved)
    if selection.machine is None:
        problem = _no_machine_reason(spec, selection.able, selection.least_gib)
        return MachineChoice("", problem=problem)
    kept = next((machine for machine in selection.fit if machine.name == existing), None)
    if kept is None or kept == selection.machine:
        return MachineChoice(selection.machine.name, selection.offer)
    best, offer = selection.offer, cheapest_offer(list_offers((kept,), card, cards), region)
    is_cheaper = best is not None and offer is not None and best.dollars < offer.dollars
    return MachineChoice(existing, offer, cheaper=best if is_cheaper else None)


def _no_machine_reason(spec: Spec, able: tuple[MachineType, ...], least: float) -> str:
    if not able:
        return f"no known machine type has {spec.gpu}"
    most = max(machine.ram_gb for machine in able)
    gpu = "" if spec.gpu.is_none else f" with {spec.gpu}"
    return f"no machine type{gpu} has {least:g} GiB of memory; the largest one has {most:g} GiB"


_PROJECT = "cloud-notebooks-managed"
"""The project of Workbench's own images (Workbench documentation, Image versioning)."""
_DATED = re.compile(r"-(\d{8})-(\d{4})-rc(\d+)$")


class ImageChoice(NamedTuple):
    """An image by project and exact name, with the family it was resolved from; or a problem."""

    project: str
    name: str
    family: str = ""
    problem: str = ""


def is_image_unpinned(image: str | None) -> bool:
    """Return whether the spec names no image, or only a family."""
    return image is None or not split_image_name(image)[1]


def choose_image(
    declared: str | None,
    facts: Facts,
    config: Mapping[str, Any] | None,
    recorded: Mapping[str, Any] | None,
) -> ImageChoice:
    """Return the image of an instance.

    `config` is the answer of getConfig in the first zone; None if it was not requested or failed.
    The image of an existing instance (`recorded`: project, name, family) stays as long as the spec
    names the same family: a weekly image is not a reason for a new machine.
    """
    family = split_image_name(declared)[0] if declared else facts.newest_workbench_image().family
    row = facts.images.get(family)
    project = row.project if row else _PROJECT
    if declared is not None and not is_image_unpinned(declared):
        return ImageChoice(project, declared)
    if recorded is not None and recorded.get("family") == family:
        return ImageChoice(str(recorded["project"]), str(recorded["name"]), family)
    if config is None:
        return ImageChoice(
            project, "", family, f"the images in the family {family} could not be listed"
        )
    offered = [
        str(image.get("imageName", ""))
        for image in config.get("availableImages", ())
        if image.get("imageFamily") == family
    ]
    if not offered:
        return ImageChoice(project, "", family, f"Workbench offers no image in the family {family}")
    return ImageChoice(project, max(offered, key=_age), family)


def _age(name: str) -> tuple[str, str, int, str]:
    match = _DATED.search(name)
    return (match[1], match[2], int(match[3]), name) if match else ("", "", 0, name)
