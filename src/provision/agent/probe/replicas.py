"""The machines of a job, with the reports that the device program read of each."""

from __future__ import annotations

from dataclasses import dataclass

from ..core.json_fields import FieldReader
from .model import JsonObject


@dataclass(frozen=True, slots=True)
class Rendezvous:
    """Meeting point of the processes of all machines; `rank` is this machine's, from 0.

    `address` is the one at which the others reach this machine.
    """

    rank: int
    chief: str
    port: int
    address: str


@dataclass(frozen=True, slots=True)
class DeclaredReplicas:
    """The machines of a job: their number, and what each of them reported before the probe.

    `reports` are by name; a machine that did not come has none. `rendezvous` is None if the probe
    does not run in a job.
    """

    count: int
    names: tuple[str, ...] = ()
    reports: tuple[JsonObject, ...] = ()
    rendezvous: Rendezvous | None = None


def read_replicas(reader: FieldReader | None) -> DeclaredReplicas | None:
    """Return the machines of a job; None for the single machine of another kind."""
    if reader is None:
        return None
    count = int(reader.number("count"))
    if "rendezvous" not in reader.document:
        return DeclaredReplicas(count)
    place = reader.section("rendezvous")
    return DeclaredReplicas(
        count,
        reader.texts("names"),
        tuple(row for row in reader.items("reports") if isinstance(row, dict)),
        Rendezvous(
            int(place.number("rank")),
            place.text("chief"),
            int(place.number("port")),
            place.text("address"),
        ),
    )
