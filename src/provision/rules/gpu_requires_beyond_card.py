"""`requires` asks for more than the card has.

## What it does

Compares `requires.compute_capability` and `requires.vram` with the card of each place. Of the memory that is asked for, nine tenths are enough, as on the
device: a driver keeps a part for itself.

## Why

The check on the device would fail for certain, after the machine was made and paid for.

## How to fix

Ask for less, or for another card; `requires` under a target holds there alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from provision.diagnostics import Diagnostic, Severity
from provision.facts import Card
from provision.rules.needs import Need, need
from provision.rules.rule import Case, Example, Rule, seen
from provision.rules.sites import Site
from provision.spec import bytes_of

GIB = 2**30
SHARE = 0.9
"""Of the declared GPU memory: what the check on the device asks for (_VRAM_SHARE in probe/judging/torchbuild.py). Our choice."""


def check(case: Case) -> Iterator[Diagnostic]:
    """Yield a finding for each need that a known card does not meet."""
    said = set()
    for site in case.sites:
        for key in ("compute_capability", "vram") if site.card is not None else ():
            asked = need(case, site, key)
            if asked is None or site.card is None or (asked.route, site.device.gpu_route) in said:
                continue
            found = _capability(case, site, site.card, asked) if key == "compute_capability" else _memory(case, site, site.card, asked)
            if found is not None:
                said.add((asked.route, site.device.gpu_route))
                yield found


def _capability(case: Case, site: Site, card: Card, asked: Need) -> Diagnostic | None:
    specifiers = asked.specifiers
    if specifiers is None or specifiers.contains(card.cc):
        return None
    fits = [other for other in _offered(case, site) if specifiers.contains(other.cc)]
    return _finding(site, asked, f"{card.name} has {card.cc}", card, min(fits, key=lambda other: other.memory_gb, default=None))


def _memory(case: Case, site: Site, card: Card, asked: Need) -> Diagnostic | None:
    needed = bytes_of(asked.text) * SHARE
    if needed <= card.memory_gb * GIB:
        return None
    fits = [other for other in _offered(case, site) if other.memory_gb * GIB >= needed]
    return _finding(site, asked, f"{card.name} has {card.memory_gb:g} GB", card, min(fits, key=lambda other: other.memory_gb, default=None))


def _finding(site: Site, asked: Need, has: str, card: Card, other: Card | None) -> Diagnostic:
    key = asked.route[-1]
    return RULE.found(
        f"requires.{key}: {asked.text} is asked for, and {has}",
        asked.route,
        severity=card.evidence.at_most(Severity.ERROR),
        why="The check on the device would fail, whatever the machine.",
        way_out=f"ask for less, or for another card{f', as {other.name}' if other else ''}",
        related=(seen(site.device.gpu_route, "card asked for here"),),
    )


def _offered(case: Case, site: Site) -> list[Card]:
    """Return the cards that are offered where the place is; any card for a local target."""
    if site.target.kind == "colab":
        return [card for card in case.facts.cards if card.colab]
    return [card for card in case.facts.cards if (site.target.kind == "local" and not card.host) or card.status == "offered"]


RULE = Rule(
    id="GPU009",
    name="requires-beyond-card",
    severity=Severity.ERROR,
    summary="`requires` asks for more than the card has.",
    sources=("NVIDIA, CUDA GPU Compute Capability", "NVIDIA product data sheets"),
    page=__doc__,
    check=check,
    bad=(
        Example('gpu: T4\npython: "3.12"\npackages: [torch]\nrequires: {compute_capability: ">=8.0"}\n', '">=8.0"'),
        Example('gpu: L4\npython: "3.12"\npackages: [torch]\nrequires: {vram: 32GiB}\n', "32GiB"),
        Example('gpu: L4\npython: "3.12"\npackages: [torch]\nrequires: {vram: 24GiB}\ntargets: {c: {kind: colab, gpu: T4}}\n', "24GiB"),
    ),
    good=(
        Example('gpu: T4\npython: "3.12"\npackages: [torch]\nrequires: {compute_capability: ">=7.5", vram: 16GiB}\n'),
        Example('gpu: A100-80GB\npython: "3.12"\npackages: [torch]\nrequires: {vram: 80GiB, compute_capability: "==8.*"}\n'),
    ),
)
