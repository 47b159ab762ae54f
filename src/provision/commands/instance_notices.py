"""What of an instance runs and costs, and how to go on: said wherever a person is left alone with
it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from provision.errors import ProvisionError
from provision.facts import Facts, load_facts
from provision.facts.machines import cheapest_offer, list_offers, region_of
from provision.state import Ledger
from provision.targets import TargetContext


def hourly_price(record: Mapping[str, Any], facts: Facts) -> str:
    """Return what a recorded instance costs an hour by the tables, with the day they were read; ""
    where they have no price.
    """
    setup = record.get("body", {}).get("gceSetup", {})
    machine = facts.machines.get(str(setup.get("machineType", "")).rpartition("/")[2])
    zones = [record["zone"]] if record.get("zone") else record.get("zones", ())
    asked: Mapping[str, Any] = next(iter(setup.get("acceleratorConfigs", ())), {})
    card = next(
        (card for card in facts.cards if card.workbench and card.workbench == asked.get("type")),
        None,
    )
    if machine is None or not zones or (asked and card is None):
        return ""
    region = region_of(str(zones[0]))
    offer = cheapest_offer(list_offers((machine,), card, int(asked.get("coreCount", 0))), region)
    return (
        f"${offer.dollars:.2f} an hour in {region} ({offer.evidence.as_of}), without disks "
        "and traffic"
        if offer is not None
        else ""
    )


def running_notice(context: TargetContext, record: Mapping[str, Any]) -> str:
    """Say that an instance runs on, what it costs, and the commands that wait for it or remove it."""  # noqa: E501
    where = f"{record['instance']} in {record['zone']}"
    return (
        f"{where} runs on{_cost(context, record)}\n{_next_commands(context, 'wait on', 'attach')}"
    )


def possibly_running_notice(context: TargetContext, record: Mapping[str, Any]) -> str:
    """Say that an instance whose creation was asked for may be there, and the commands that go on
    with it or remove it.
    """
    zones = [record["zone"]] if record.get("zone") else record["zones"]
    return (
        f"{record['instance']} may be there, in "
        f"{' or '.join(zones)}{_cost(context, record)}\n{_next_commands(context, 'go on', 'apply')}"
    )


def _cost(context: TargetContext, record: Mapping[str, Any]) -> str:
    if context.sandbox_sources is not None:
        return " in the sandbox: it costs nothing"
    return (
        ", and costs "
        f"{hourly_price(record, load_facts()) or 'money: its price is not in the tables'}"
    )


def _next_commands(context: TargetContext, words: str, verb: str) -> str:
    again = (
        " (which boots its device again, unless `provision sandbox up` keeps it running)"
        if context.sandbox_sources is not None
        else ""
    )
    return f"{words}: {context.command(verb)}{again}\nremove it: {context.command('destroy')}"


def leftover_notice(contexts: Iterable[TargetContext], ledger: Ledger) -> str:
    """Say of every instance that is recorded, or was being made, that it runs and costs, and how to
    go on; "" where there is none.
    """
    return "\n".join(filter(None, (_target_notice(context, ledger) for context in contexts)))


def _target_notice(context: TargetContext, ledger: Ledger) -> str:
    record, intent = (
        ledger.state.resource(context.address, "instance"),
        ledger.find_interrupted(context.address),
    )
    if intent is not None and intent.names:
        return possibly_running_notice(
            context,
            {
                **(record or {}),
                **intent.details,
                "zone": "",
                "zones": [name.split("/")[3] for name in intent.names],
            },
        )
    if record is None or record.get("ended"):
        return ""
    return (
        running_notice(context, record)
        if record.get("zone")
        else possibly_running_notice(context, record)
    )


@contextmanager
def note_on_interrupt(words: Callable[[], str]) -> Iterator[None]:
    """Add words to the last lines of a command that is interrupted in the block."""
    try:
        yield
    except Exception:
        raise
    except BaseException as cut:
        with suppress(
            ProvisionError
        ):  # a ledger that cannot be read is no reason to hide why it ends
            if said := words():
                cut.add_note(said)
        raise


@contextmanager
def add_hint_on_error(words: Callable[[], str]) -> Iterator[None]:
    """Add words to the way out of an error of the block."""
    try:
        yield
    except ProvisionError as error:
        error.hint = "\n".join(filter(None, (error.hint, words())))
        raise
