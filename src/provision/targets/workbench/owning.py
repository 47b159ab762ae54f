"""Who an instance belongs to: which of those that bear our name is ours, and whose the others are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from provision.effects import CloudReader
from provision.targets.target import Place
from provision.targets.workbench.naming import LINEAGE, MARK, Names, label

Body = Mapping[str, Any]


class Found(NamedTuple):
    """The instances that bear a name: ours with its zone (None and ""), and the others."""

    real: Body | None
    zone: str
    others: tuple[Body, ...] = ()


def find(place: Place, names: Names, first: tuple[str, ...], cloud: CloudReader, *, adopt: bool) -> Found:
    """Return the instances that bear a place's name, in whichever zone of the project; `first` are the zones that ours is looked for in first.

    With `adopt` the only one of a spec and target of these names counts as ours, whichever state made it.
    """
    asked = tuple(dict.fromkeys((*first, *names.zones)))
    # A list may be late with a new instance, and a zone of the list may not be among those asked.
    there = {zone: real for zone in asked if (real := cloud.instance(names.full(zone))) is not None}
    for one in cloud.instances(names.project):
        zone, _, instance = str(one.get("name", "")).partition("/locations/")[2].partition("/instances/")
        if instance == names.instance:
            there.setdefault(zone, one)
    ours = [zone for zone, real in there.items() if owned(real, names)]
    if not ours and adopt and len(there) == 1:
        ours = [zone for zone, real in there.items() if of_this_kind(real, place)]
    if not ours:
        return Found(None, "", tuple(there.values()))
    return Found(there[ours[0]], ours[0], tuple(real for zone, real in there.items() if zone != ours[0]))


def owned(real: Body, names: Names) -> bool:
    """Tell whether an instance was made by the state at hand."""
    labels = real.get("labels", {})
    return bool(labels.get(MARK) == "1" and names.lineage and labels.get(LINEAGE) == names.lineage)


def of_this_kind(real: Body, place: Place) -> bool:
    """Tell whether an instance was made by provision, for a spec and target of these names."""
    labels = real.get("labels", {})
    return bool(labels.get(MARK) == "1" and (labels.get("provision-spec"), labels.get("provision-target")) == (label(place.stem), label(place.target)))


def whose(real: Body) -> str:
    """Return where an instance is and whose it is, in words."""
    labels = real.get("labels", {})
    told = ", ".join(f"{key}={labels[key]}" for key in ("provision-spec", "provision-target", LINEAGE) if key in labels) or "none of ours"
    more = [f"{word} {real[key]}" for word, key in (("made", "createTime"), ("by", "creator")) if real.get(key)]
    return "; ".join([f"{real.get('name', '')} ({real.get('state', 'of an unknown state')})", f"labels: {told}", *([" ".join(more)] if more else [])])


def beside(found: tuple[Body, ...]) -> Iterator[str]:
    """Yield what a plan says of instances that bear our name beside the one it is about."""
    for real in found:
        yield f"another instance bears this name, and costs: {whose(real)}"
