"""Facts: all tables and the lookups in them. An unknown value has the result None, not a guess."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Self

from provision.facts.card_names import reduce_name
from provision.facts.compatibility import CompatibilityFacts, cuda_of, flavour_of
from provision.facts.fact_tables import CompiledTables
from provision.facts.schema_packages import UndeclaredRequirement, VersionFloor
from provision.facts.schema_platforms import (
    GpuAttachment,
    ImageDriver,
    ImageFamily,
    MachineType,
)
from provision.facts.schema_torch import Card, UnsupportedAccelerator
from provision.facts.tables_in_use import COMPILED_NAME, INSTALLED_TABLES, tables_in_use
from provision.facts.versions import parse_version, require_version

__all__ = ["COMPILED_TABLES", "Facts", "cuda_of", "flavour_of", "load_facts"]
COMPILED_TABLES = INSTALLED_TABLES / COMPILED_NAME


class Facts(CompatibilityFacts):
    """All tables with the lookups about builds and cards, machines, images and transformers."""

    def __init__(self, compiled: CompiledTables) -> None:
        self.compiled = compiled
        self._replaced: dict[str, Any] = {}

    def with_tables(self, **tables: Any) -> Self:
        """Return the same facts with some tables replaced."""
        facts = type(self)(self.compiled)
        facts._replaced = {**self._replaced, **tables}
        facts.__dict__.update(facts._replaced)
        return facts

    def card(self, name: str) -> Card | None:
        """Return the accelerator with a name or alias, in any case.

        Names that nvidia-smi, lspci and clouds print are found too ("NVIDIA A100-SXM4-80GB").
        """
        exact = self._cards_by_name.get(name.casefold())
        return exact or self._cards_by_reduced_name.get(reduce_name(name))

    def unsupported_accelerator(self, name: str) -> UnsupportedAccelerator | None:
        """Return the family of an accelerator that is not an NVIDIA card, None if unknown."""
        if self.card(name) is not None:
            return None
        words = "-".join(re.findall(r"[a-z0-9]+", name.casefold()))
        rows = (row for row in self.unsupported if re.search(row.pattern, words))
        return next(rows, None)

    def image_driver(self, family: str, day: str) -> ImageDriver | None:
        """Return the driver of a family's image of a day ("20260809")."""
        drivers = [
            row
            for row in self.image_drivers
            if row.family == family and row.since.isdigit() and row.since <= day
        ]
        return max(drivers, key=lambda row: row.since, default=None)

    def newest_workbench_image(self) -> ImageFamily:
        """Return the newest family of Workbench's images."""
        families = (
            row for row in self.images.values() if row.kind == "workbench" and not row.legacy
        )
        return max(families, key=lambda row: row.released)

    def machines_with(self, card: str, count: int = 1) -> tuple[MachineType, ...]:
        """Return the machine types with exactly that many cards, the smallest first."""
        return self._machines_by_card.get((card, count), ())

    def attachment(self, card: str, count: int = 1) -> GpuAttachment | None:
        """Return the largest N1 machine to which that many cards can be attached."""
        rows = (row for row in self.attachments if row.card == card and row.gpus == count)
        return next(rows, None)

    def accelerate_floor(self, transformers: str) -> VersionFloor | None:
        """Return the oldest accelerate that works with Trainer of a transformers release.

        It is the release that transformers requires, or a later one that first has a function
        that Trainer calls. None if Trainer needs no accelerate, or the release is unknown.
        """
        floor, release = self._floor(transformers, "accelerate"), parse_version(transformers)
        if floor is None or release is None:
            return floor
        calls = [
            row
            for row in self.trainer_calls
            if require_version(row.first) <= release
            and require_version(row.accelerate) > require_version(floor.version)
        ]
        if not calls:
            return floor
        newest = max(calls, key=lambda row: require_version(row.accelerate))
        return VersionFloor(newest.accelerate, newest.accelerate, newest.evidence)

    def torch_floor(self, transformers: str) -> VersionFloor | None:
        """Return the torch below which a transformers release disables PyTorch."""
        return self._floor(transformers, "torch")

    def has_transformers_release(self, version: str) -> bool:
        """Return whether a release is between the oldest and the newest one in the table."""
        release = parse_version(version)
        if release is None:
            return False
        oldest, newest = self.transformers[0].first, self.transformers[-1].last
        return require_version(oldest) <= release <= require_version(newest)

    def flavour_index(self, flavour: str) -> str:
        """Return the URL of the PyTorch index for a flavour such as "cu128" or "cpu"."""
        return self.index_pattern.format(flavour=flavour)

    def cudas(self) -> tuple[str, ...]:
        """Return the CUDA versions that any torch release was built for, oldest first."""
        flavours = {flavour for row in self.torch for flavour in row.builds}
        return tuple(sorted(map(cuda_of, flavours), key=require_version))

    def completions(self) -> dict[str, list[str]]:
        """Return the known values of `gpu`, `python` and `cuda`, which editors offer."""
        return {
            "gpu": ["none", "mps", *(card.name for card in self.cards)],
            "python": [row.version for row in self.pythons],
            "cuda": ["auto", "none", *self.cudas()],
        }

    @cached_property
    def _machines_by_card(self) -> dict[tuple[str, float], tuple[MachineType, ...]]:
        machines: dict[tuple[str, float], list[MachineType]] = {}
        for row in sorted(self.machines.values(), key=lambda row: (row.vcpus, row.ram_gb)):
            machines.setdefault((row.card, row.gpus), []).append(row)
        return {key: tuple(rows) for key, rows in machines.items()}

    @cached_property
    def undeclared_of(self) -> Mapping[str, tuple[UndeclaredRequirement, ...]]:
        """The undeclared requirements of each package, the most severe first."""
        groups: dict[str, list[UndeclaredRequirement]] = {}
        # "error" sorts before "warning".
        for row in sorted(self.undeclared, key=lambda row: row.severity):
            groups.setdefault(row.package, []).append(row)
        return {package: tuple(group) for package, group in groups.items()}

    @cached_property
    def bringers_of(self) -> Mapping[str, frozenset[str]]:
        """The packages, or extras as "package[extra]", that bring each package."""
        groups: dict[str, set[str]] = {}
        for row in self.bringers.values():
            for name in row.brings:
                groups.setdefault(name, set()).add(row.package)
        return {name: frozenset(group) for name, group in groups.items()}

    @cached_property
    def _cards_by_name(self) -> dict[str, Card]:
        return {
            name.casefold(): card
            for card in reversed(self.cards)
            for name in (*card.aliases, card.name)
        }

    @cached_property
    def _cards_by_reduced_name(self) -> dict[str, Card]:
        return {
            reduce_name(name): card
            for card in reversed(self.cards)
            for name in (*card.aliases, card.name)
        }

    def _floor(self, transformers: str, package: str) -> VersionFloor | None:
        """Return a package's floor from the two rows around a release: floors never decrease."""
        release = parse_version(transformers)
        if release is None:
            return None
        rows = self.transformers
        upper = bisect_left(rows, release, key=lambda row: require_version(row.last))
        lower = bisect_right(rows, release, key=lambda row: require_version(row.first)) - 1
        if upper == len(rows) or lower < 0:
            return None
        version: str | None = getattr(rows[upper], package)
        if version is None:
            return None
        return VersionFloor(version, getattr(rows[lower], package), rows[upper].evidence)


def load_facts(path: Path | None = None) -> Facts:
    """Return the facts in use, or those of a compiled file; tables are built at their first use.

    Raises:
        ProvisionError: the file is missing, damaged, or written for a later version. A damaged
            table raises it at its first use.
    """
    return _load_facts(path or tables_in_use.get() / COMPILED_NAME)


@lru_cache(maxsize=8)
def _load_facts(path: Path) -> Facts:
    return Facts(CompiledTables(path))
