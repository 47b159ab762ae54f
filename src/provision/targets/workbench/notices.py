"""Notices about instances that keep running: zone, price and next commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from provision.errors import ProvisionError
from provision.facts import Facts, load_facts
from provision.facts.machines import cheapest_offer, list_offers, region_of
from provision.state import Ledger
from provision.targets.context import TargetContext
from provision.targets.workbench.choices import format_price
from provision.targets.workbench.records import InstanceRecord, zone_of


def hourly_price(record: InstanceRecord, facts: Facts) -> str:
    """Return the hourly price of a recorded instance with its date; "" if the facts have none."""
    setup = (record.body or {}).get("gceSetup", {})
    machine = facts.machines.get(str(setup.get("machineType", "")).rpartition("/")[2])
    if machine is None or not record.possible_zones:
        return ""
    card, count = None, 0
    if configs := setup.get("acceleratorConfigs"):
        name, count = configs[0].get("type"), int(configs[0].get("coreCount", 0))
        card = next((card for card in facts.cards if name and card.workbench == name), None)
        if card is None:
            return ""
    region = region_of(record.possible_zones[0])
    offer = cheapest_offer(list_offers((machine,), card, count), region)
    return format_price(offer) if offer is not None else ""


def running_notice(context: TargetContext, record: InstanceRecord) -> str:
    """Return that an instance keeps running, with its price and the next commands."""
    where = f"{record.instance} in {record.zone}"
    commands = _next_commands(context, "wait for it", "attach")
    return f"{where} keeps running{_cost(context, record)}\n{commands}"


def leftover_notice(context: TargetContext, ledger: Ledger) -> str:
    """Return the notice about a target's instance, recorded or being made; "" if there is none."""
    record = InstanceRecord.find(ledger.state, context.address)
    intent = ledger.find_interrupted(context.address)
    if intent is not None and intent.names:
        requested = InstanceRecord.from_intent(intent, tuple(map(zone_of, intent.names)))
        body = record.body if record is not None else None
        return _possibly_running_notice(context, replace(requested, zone="", body=body))
    if record is None or record.ended:
        return ""
    if record.zone:
        return running_notice(context, record)
    return _possibly_running_notice(context, record)


@contextmanager
def add_hint_on_error(hint: Callable[[], str]) -> Iterator[None]:
    """Add a hint to an error of the block."""
    try:
        yield
    except ProvisionError as error:
        error.hint = "\n".join(filter(None, (error.hint, hint())))
        raise


def _possibly_running_notice(context: TargetContext, record: InstanceRecord) -> str:
    zones = " or ".join(record.possible_zones)
    commands = _next_commands(context, "continue", "apply")
    return f"{record.instance} may exist in {zones}{_cost(context, record)}\n{commands}"


def _cost(context: TargetContext, record: InstanceRecord) -> str:
    if context.sandbox_sources is not None:
        return ", in the sandbox at no cost"
    price = hourly_price(record, load_facts()) or "money (its price is not in the facts)"
    return f" and costs {price}"


def _next_commands(context: TargetContext, label: str, verb: str) -> str:
    reboot = ""
    if context.sandbox_sources is not None:
        reboot = " (which boots its device again, unless `provision sandbox up` keeps it running)"
    remove = context.command("destroy")
    return f"{label}: {context.command(verb)}{reboot}\nremove it: {remove}"
