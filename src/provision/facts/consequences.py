"""Consequences of a fact row in sentences, and the age of its source."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from provision.facts.compatibility import CodeForm
from provision.facts.facts import Facts, cuda_of
from provision.facts.schema_torch import Card
from provision.facts.table_lookup import FactRow


@dataclass(frozen=True, slots=True)
class ExplainedRow:
    """A row with its consequences and the days since its source was read.

    `age_days` is None if the clock is earlier than that day.
    """

    row: FactRow
    age_days: int | None
    consequences: tuple[str, ...] = ()


def age_in_days(as_of: str, now: str) -> int | None:
    """Return the whole days between two dates ("2026-11-20"); None if `now` is the earlier one."""
    days = (date.fromisoformat(now[:10]) - date.fromisoformat(as_of)).days
    return days if days >= 0 else None


def derive_consequences(row: FactRow, facts: Facts) -> tuple[str, ...]:
    """Return the sentences that follow from a row; () for tables without any."""
    match row.table:
        case "builds":
            return tuple(_build_consequences(row, facts))
        case "gpus":
            card = facts.card(row.key)
            return () if card is None else tuple(_card_consequences(card, facts))
        case "cuda.toolkits":
            return tuple(_toolkit_consequences(row.key, facts))
        case _:
            return ()


def _build_consequences(row: FactRow, facts: Facts) -> Iterator[str]:
    build = facts.builds[row.key]
    with_code, by_ptx, without_code = list[str](), list[str](), list[str]()
    for card in facts.cards:
        if card.host not in ("", build.platform):
            continue
        code = facts.code_for(card, build)
        (without_code if code is None else with_code).append(card.name)
        if code is not None and code.form is CodeForm.PTX:
            by_ptx.append(card.name)
    yield f"runs on {_listed(with_code)}"
    if by_ptx:
        yield f"of these, through PTX that is compiled at first start: {_listed(by_ptx)}"
    yield f"has no code for {_listed(without_code)}"
    yield from _toolkit_consequences(cuda_of(build.flavour), facts)


def _card_consequences(card: Card, facts: Facts) -> Iterator[str]:
    features = facts.capabilities[card.cc].features
    yield f"supports {_listed([name for name in features if facts.has_feature(card, name)])}"
    last = facts.last_driver_branch(card)
    if last is None:
        yield "no driver branch in the facts drops support for it"
    else:
        yield f"the last driver branch for {card.arch} is {last.branch}"
    platform = card.host or "linux-x86_64"
    for release in reversed(facts.torch):
        if builds := facts.builds_for_card(card, release.release, platform):
            flavours = _listed([build.flavour for build in builds])
            lead = f"the newest torch that runs on it ({platform})"
            yield f"{lead} is {release.release}, built for {flavours}"
            return
    yield f"no torch build in the facts runs on it on {platform}"


def _toolkit_consequences(cuda: str, facts: Facts) -> Iterator[str]:
    linux, windows = facts.driver_floor(cuda), facts.driver_floor(cuda, windows=True)
    if linux and windows:
        lead = f"programs built with CUDA {cuda} need driver"
        yield f"{lead} {linux} or newer on Linux, {windows} or newer on Windows"


def _listed(names: list[str]) -> str:
    return ", ".join(names) or "none"
