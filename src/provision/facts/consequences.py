"""What follows from a row and the tables beside it, in sentences, and how old the row is."""

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
    """A row, the days since its source was read (None: the clock says it is in the future), and
    what follows from it.
    """

    row: FactRow
    age_days: int | None
    consequences: tuple[str, ...] = ()


def age_in_days(as_of: str, now: str) -> int | None:
    """Return the whole days between two days or times that begin "2026-11-20"; None when `now` is
    the earlier one.
    """
    days = (date.fromisoformat(now[:10]) - date.fromisoformat(as_of)).days
    return days if days >= 0 else None


def derive_consequences(entry: FactRow, facts: Facts) -> tuple[str, ...]:
    """Return what the arithmetic of the facts concludes from a row; () for tables without any."""
    match entry.table:
        case "builds":
            return tuple(_of_build(entry, facts))
        case "gpus":
            card = facts.card(entry.key)
            return () if card is None else tuple(_of_card(card, facts))
        case "cuda.toolkits":
            return tuple(_of_toolkit(entry.key, facts))
        case _:
            return ()


def _of_build(entry: FactRow, facts: Facts) -> Iterator[str]:
    build = facts.builds[entry.key]
    codes = {
        card.name: facts.code_for(card, build)
        for card in facts.cards
        if card.host in ("", build.platform)
    }
    by_ptx = [
        name for name, code in codes.items() if code is not None and code.form is CodeForm.PTX
    ]
    yield f"runs on {_listed([name for name, code in codes.items() if code is not None])}"
    if by_ptx:
        yield f"of these by PTX, compiled at the first start: {_listed(by_ptx)}"
    yield f"has no code for {_listed([name for name, code in codes.items() if code is None])}"
    yield from _of_toolkit(cuda_of(build.flavour), facts)


def _of_card(card: Card, facts: Facts) -> Iterator[str]:
    features = facts.capabilities[card.cc].features
    yield f"has {_listed([name for name in features if facts.has_feature(card, name)])} in hardware"
    last = facts.last_driver_branch(card)
    yield (
        f"the last driver branch for {card.arch} is {last.branch}"
        if last
        else "no driver branch in the facts drops it"
    )
    platform = card.host or "linux-x86_64"
    for row in reversed(facts.torch):
        if builds := facts.builds_for_card(card, row.release, platform):
            flavours = _listed([build.flavour for build in builds])
            (
                yield f"the newest torch with code for it ({platform}) is {row.release}, built for "
                f"{flavours}"
            )
            return
    yield f"no torch build in the facts has code for it on {platform}"


def _of_toolkit(cuda: str, facts: Facts) -> Iterator[str]:
    if (linux := facts.driver_floor(cuda)) and (windows := facts.driver_floor(cuda, windows=True)):
        (
            yield f"programs made for CUDA {cuda} need driver {linux} or newer on Linux, {windows} "
            "on Windows"
        )


def _listed(names: list[str]) -> str:
    return ", ".join(names) or "nothing"
