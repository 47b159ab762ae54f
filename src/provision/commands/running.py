"""What of an instance runs and costs, and how to go on: said wherever a person is left alone with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from provision.errors import ProvisionError
from provision.facts import Facts
from provision.facts import load as load_facts
from provision.facts.machines import cheapest, offers, region_of
from provision.state import Ledger
from provision.targets import Place


def price(record: Mapping[str, Any], facts: Facts) -> str:
    """Return what a recorded instance costs an hour by the tables, with the day they were read; "" where they have no price."""
    setup = record.get("body", {}).get("gceSetup", {})
    machine = facts.machines.get(str(setup.get("machineType", "")).rpartition("/")[2])
    zones = [record["zone"]] if record.get("zone") else record.get("zones", ())
    asked: Mapping[str, Any] = next(iter(setup.get("acceleratorConfigs", ())), {})
    card = next((card for card in facts.cards if card.workbench and card.workbench == asked.get("type")), None)
    if machine is None or not zones or (asked and card is None):
        return ""
    region = region_of(str(zones[0]))
    offer = cheapest(offers((machine,), card, int(asked.get("coreCount", 0))), region)
    return f"${offer.dollars:.2f} an hour in {region} ({offer.evidence.as_of}), without disks and traffic" if offer is not None else ""


def still_runs(place: Place, record: Mapping[str, Any]) -> str:
    """Say that an instance runs on, what it costs, and the commands that wait for it or remove it."""
    where = f"{record['instance']} in {record['zone']}"
    return f"{where} runs on{_cost(place, record)}\n{_ways_on(place, 'wait on', 'attach')}"


def may_run(place: Place, record: Mapping[str, Any]) -> str:
    """Say that an instance whose creation was asked for may be there, and the commands that go on with it or remove it."""
    zones = [record["zone"]] if record.get("zone") else record["zones"]
    return f"{record['instance']} may be there, in {' or '.join(zones)}{_cost(place, record)}\n{_ways_on(place, 'go on', 'apply')}"


def _cost(place: Place, record: Mapping[str, Any]) -> str:
    if place.stand_in is not None:
        return " in the sandbox: it costs nothing"
    return f", and costs {price(record, load_facts()) or 'money: its price is not in the tables'}"


def _ways_on(place: Place, words: str, verb: str) -> str:
    again = " (which boots its device again, unless `provision sandbox up` keeps it running)" if place.stand_in is not None else ""
    return f"{words}: {place.command(verb)}{again}\nremove it: {place.command('destroy')}"


def left_behind(places: Iterable[Place], ledger: Ledger) -> str:
    """Say of every instance that is recorded, or was being made, that it runs and costs, and how to go on; "" where there is none."""
    return "\n".join(filter(None, (_left(place, ledger) for place in places)))


def _left(place: Place, ledger: Ledger) -> str:
    record, intent = ledger.state.resource(place.address, "instance"), ledger.cut_short(place.address)
    if intent is not None and intent.names:
        return may_run(place, {**(record or {}), **intent.details, "zone": "", "zones": [name.split("/")[3] for name in intent.names]})
    if record is None or record.get("ended"):
        return ""
    return still_runs(place, record) if record.get("zone") else may_run(place, record)


@contextmanager
def noting(words: Callable[[], str]) -> Iterator[None]:
    """Add words to the last lines of a command that is interrupted in the block."""
    try:
        yield
    except Exception:
        raise
    except BaseException as cut:
        with suppress(ProvisionError):  # a ledger that cannot be read is no reason to hide why it ends
            if said := words():
                cut.add_note(said)
        raise


@contextmanager
def telling(words: Callable[[], str]) -> Iterator[None]:
    """Add words to the way out of an error of the block."""
    try:
        yield
    except ProvisionError as error:
        error.hint = "\n".join(filter(None, (error.hint, words())))
        raise
