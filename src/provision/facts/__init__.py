"""What the world is known to be: tables of sourced, dated facts and the arithmetic over them."""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provision.errors import ProvisionError
from provision.facts.rows import Card, Evidence, Floor, PythonVersion, Replaced, TorchRelease, TransformersRun
from provision.facts.versions import ordered, parsed

__all__ = ["Card", "Evidence", "Facts", "Floor", "PythonVersion", "Replaced", "TorchRelease", "TransformersRun", "load"]
COMPILED = Path(__file__).with_name("compiled.json")


@dataclass(frozen=True, slots=True)
class Facts:
    """All tables. Releases stand oldest first; package names are canonical (PEP 503); an unknown thing is answered with None."""

    torch: tuple[TorchRelease, ...]
    transformers: tuple[TransformersRun, ...]
    cards: tuple[Card, ...]
    pythons: tuple[PythonVersion, ...]
    replaced: Mapping[str, Replaced]
    wheels: Mapping[str, str]
    """File name to sha256, each confirmed by a source other than the file's own index."""
    torch_family: frozenset[str]
    flavoured: frozenset[str]
    """The packages that are built once per CUDA flavour and carry its tag (+cu128) in their version."""
    torch_hosts: frozenset[str]
    popular: frozenset[str]
    seen: frozenset[str]
    accelerate_extras: frozenset[str]
    accelerate_packages: frozenset[str]
    index_pattern: str

    def torch_release(self, version: str) -> TorchRelease | None:
        """Return the release that `version` ("2.13", "2.13.0+cu130") is, or None when the table has no such release."""
        wanted = parsed(version)
        if wanted is None or wanted.is_prerelease or wanted.is_postrelease or len(wanted.release) > 3:
            return None
        release = ".".join(str(part) for part in (*wanted.release, 0, 0)[:3])
        return next((row for row in self.torch if row.release == release), None)

    def accelerate_floor(self, transformers: str) -> Floor | None:
        """Return the accelerate that Trainer of that transformers release asks for; None when it asks for none, or is outside the table."""
        return self._floor(transformers, "accelerate")

    def torch_floor(self, transformers: str) -> Floor | None:
        """Return the torch below which that transformers release switches PyTorch off; None when there is none, or it is outside the table."""
        return self._floor(transformers, "torch")

    def knows_transformers(self, version: str) -> bool:
        """Tell whether a release lies within the table, between the oldest and the newest one that was read."""
        wanted = parsed(version)
        return wanted is not None and ordered(self.transformers[0].first) <= wanted <= ordered(self.transformers[-1].last)

    def flavour_index(self, flavour: str) -> str:
        """Return the address of the PyTorch index for a flavour such as "cu128" or "cpu"."""
        return self.index_pattern.format(flavour=flavour)

    def card(self, name: str) -> Card | None:
        """Return the accelerator of that name or alias, whatever its case, or None."""
        wanted = name.casefold()
        return next((card for card in self.cards if wanted in (card.name.casefold(), *(alias.casefold() for alias in card.aliases))), None)

    def cudas(self) -> tuple[str, ...]:
        """Return the CUDA versions that any torch release was built for, oldest first."""
        flavours = {flavour for row in self.torch for flavour in row.builds}
        return tuple(sorted((cuda_of(flavour) for flavour in flavours), key=ordered))

    def completions(self) -> dict[str, list[str]]:
        """Return the known values of a spec's `gpu`, `python` and `cuda`: offered by editors, never the only ones allowed."""
        return {
            "gpu": ["none", "mps", *(card.name for card in self.cards)],
            "python": [row.version for row in self.pythons],
            "cuda": ["auto", "none", *self.cudas()],
        }

    def _floor(self, transformers: str, of: str) -> Floor | None:
        """Bracket the release between two that were read; floors never fall from one release to the next."""
        wanted = parsed(transformers)
        if wanted is None:
            return None
        runs = self.transformers
        upper = bisect_left([ordered(run.last) for run in runs], wanted)
        lower = bisect_right([ordered(run.first) for run in runs], wanted) - 1
        if upper == len(runs) or lower < 0 or (sure := getattr(runs[upper], of)) is None:
            return None
        return Floor(sure, getattr(runs[lower], of), runs[upper].evidence)


def flavour_of(cuda: str) -> str:
    """Return the torch build family of a spec's CUDA version: "cu128" for "12.8", "cpu" for "none"."""
    return "cpu" if cuda == "none" else "cu" + cuda.replace(".", "")


def cuda_of(flavour: str) -> str:
    """Return the CUDA version of a build family: "12.8" for "cu128", "none" for "cpu"."""
    return "none" if flavour == "cpu" else f"{flavour[2:-1]}.{flavour[-1]}"


def load(path: Path = COMPILED) -> Facts:
    """Read the compiled tables.

    Raises ProvisionError when the file is missing or damaged.
    """
    try:
        return _facts(json.loads(path.read_bytes()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ProvisionError(
            "the fact tables of this installation cannot be read", why=f"{path.name}: {type(error).__name__}", hint="reinstall provision-ml"
        ) from None


def _facts(tables: dict[str, Any]) -> Facts:
    torch, transformers, names = tables["torch"], tables["transformers"], tables["names"]
    brings = transformers["brings_accelerate"]
    return Facts(
        torch=tuple(_torch(row, torch) for row in torch["rows"]),
        transformers=tuple(TransformersRun(**_row(row, transformers)) for row in transformers["rows"]),
        cards=tuple(Card(**_row(row, tables["gpus"])) for row in tables["gpus"]["rows"]),
        pythons=tuple(PythonVersion(**_row(row, tables["pythons"])) for row in tables["pythons"]["rows"]),
        replaced={row["name"]: Replaced(**_row(row, names)) for row in names["replaced"]},
        wheels={row["file"]: row["sha256"] for row in tables["wheels"]["rows"]},
        torch_family=frozenset(torch["family"]),
        flavoured=frozenset(torch["flavoured"]),
        torch_hosts=frozenset(torch["hosts"]),
        popular=frozenset(names["popular"]),
        seen=frozenset(names["seen"]),
        accelerate_extras=frozenset(brings["extras"]),
        accelerate_packages=frozenset(brings["packages"]),
        index_pattern=torch["index"],
    )


def _torch(row: dict[str, Any], table: dict[str, Any]) -> TorchRelease:
    return TorchRelease(**_row({"pythons_aarch64": row["pythons"], **row}, table))


def _row(row: dict[str, Any], table: dict[str, Any]) -> dict[str, Any]:
    evidence = Evidence(*(row.get(key, table[key]) for key in ("source", "as_of", "confidence")))
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in row.items() if key not in ("source", "as_of", "confidence")}
    return {**values, "evidence": evidence}
