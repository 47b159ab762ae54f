"""What the world is known to be: tables of sourced, dated facts and the arithmetic over them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from provision.facts import packages, places, rows, variables
from provision.facts.catalogue import Facts, cuda_of, flavour_of
from provision.facts.parts import damaged, read, typed
from provision.facts.rows import Build, Card, Evidence, Floor, PythonVersion, Replaced, TorchRelease, TransformersRun

__all__ = [
    "Build",
    "Card",
    "Evidence",
    "Facts",
    "Floor",
    "PythonVersion",
    "Replaced",
    "TorchRelease",
    "TransformersRun",
    "cuda_of",
    "flavour_of",
    "load",
]
COMPILED = Path(__file__).with_name("compiled.json")
_Row = TypeVar("_Row")
_Tables = dict[str, dict[str, Any]]


def load(path: Path = COMPILED) -> Facts:
    """Read the compiled tables.

    Raises ProvisionError when the file is missing, damaged, or written for a later version.
    """
    try:
        return _facts(read(path))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise damaged(path, error) from None


def _facts(tables: _Tables) -> Facts:
    """Make typed rows of the tables; one object of evidence serves all rows that share it."""
    torch, names, brings = tables["torch"], tables["names"], tables["transformers"]["brings_accelerate"]
    every = _reader(tables)
    runs: dict[str, list[packages.Run]] = {}
    for run in every(packages.Run, "packages", "runs"):
        runs.setdefault(run.package, []).append(run)
    return Facts(
        torch=every(_torch, "torch"),
        transformers=every(TransformersRun, "transformers"),
        cards=every(Card, "gpus"),
        pythons=every(PythonVersion, "pythons"),
        replaced={row.name: row for row in every(Replaced, "names", "replaced")},
        wheels={row["file"]: row["sha256"] for row in tables["wheels"]["rows"]},
        torch_family=frozenset(torch["family"]),
        flavoured=frozenset(torch["flavoured"]),
        torch_hosts=frozenset(torch["hosts"]),
        popular=frozenset(names["popular"]),
        seen=frozenset(names["seen"]),
        accelerate_extras=frozenset(brings["extras"]),
        accelerate_packages=frozenset(brings["packages"]),
        index_pattern=torch["index"],
        runs={name: tuple(of) for name, of in runs.items()},
        **_hardware(every),
        **_places(every),
        **_extensions(every),
        **_variables(every),
    )


def _hardware(every: Callable[..., tuple[Any, ...]]) -> dict[str, Any]:
    return {
        "builds": {f"{row.release}:{row.flavour}:{row.platform}": row for row in every(_build, "builds")},
        "toolkits": {row.cuda: row for row in every(_toolkit, "cuda", "toolkits")},
        "drivers": every(rows.DriverBranch, "cuda", "drivers"),
        "capabilities": {row.cc: row for row in every(rows.Capability, "cuda", "capabilities")},
        "mps": {row.precision: row for row in every(rows.MpsPrecision, "mps")},
    }


def _places(every: Callable[..., tuple[Any, ...]]) -> dict[str, Any]:
    return {
        "machines": {row.name: row for row in every(places.Machine, "machines")},
        "attachments": every(places.Attachment, "machines", "attach"),
        "images": {row.family: row for row in every(places.Image, "images")},
        "image_drivers": every(places.ImageDriver, "images", "drivers"),
        "image_changes": every(places.ImageChange, "images", "changes"),
        "systems": {row.os: row for row in every(places.System, "images", "systems")},
        "runtimes": {row.runtime: row for row in every(places.Runtime, "colab", "runtimes")},
        "shapes": every(places.Shape, "colab", "shapes"),
        "conditions": {row.name: row for row in every(places.Condition, "colab", "conditions")},
        "protected": {row.package: row for row in every(places.Protected, "colab", "protected")},
    }


def _extensions(every: Callable[..., tuple[Any, ...]]) -> dict[str, Any]:
    return {
        "flash_attention": every(packages.FlashAttentionWheels, "extensions", "flash_attn"),
        "bitsandbytes": every(packages.BitsandbytesBinaries, "extensions", "bitsandbytes"),
        "capability_floors": every(packages.CapabilityFloor, "extensions", "capability_floors"),
        "source_only": {row.package: row for row in every(packages.SourceOnly, "extensions", "sdist_only")},
        "numpy_floors": {row.package: row for row in every(packages.NumpyFloor, "extensions", "numpy2")},
        "optimizers": {row.name: row for row in every(packages.OptimizerState, "memory", "optimizers")},
        "overhead": {row.name: row for row in every(packages.Overhead, "memory", "overhead")},
    }


def _variables(every: Callable[..., tuple[Any, ...]]) -> dict[str, Any]:
    named: dict[str, tuple[variables.Variable, ...]] = {}
    for row in every(variables.Variable, "variables"):
        named[row.variable] = (*named.get(row.variable, ()), row)
    return {
        "variables": named,
        "folders": {row.variable: row for row in every(variables.FolderVariable, "variables", "folders")},
        "allocator_options": {row.option: row for row in every(variables.AllocatorOption, "variables", "allocator")},
    }


def _reader(tables: _Tables) -> Callable[..., tuple[Any, ...]]:
    shared: dict[tuple[str, str, str], Evidence] = {}

    def every(kind: Callable[..., _Row], table: str, name: str = "rows") -> tuple[_Row, ...]:
        return tuple(kind(**typed(row, tables[table], shared)) for row in tables[table][name])

    return every


def _torch(**row: Any) -> TorchRelease:
    return TorchRelease(**{"pythons_aarch64": row["pythons"], **row})


def _build(**row: Any) -> Build:
    return Build(**{**row, "sm": tuple(row["sm"].split())})


def _toolkit(**row: Any) -> rows.Toolkit:
    return rows.Toolkit(**{**row, "capabilities": tuple((row["capabilities"] or "").split())})
