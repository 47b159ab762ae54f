"""What the world is known to be: tables of sourced, dated facts and the arithmetic over them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache, partial
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
_Of = TypeVar("_Of", packages.Run, packages.WheelPythons)
_Tables = dict[str, dict[str, Any]]
_Maker = Callable[[], Any]


@lru_cache(maxsize=8)
def load(path: Path = COMPILED) -> Facts:
    """Return the compiled tables; each is made when it is first asked for.

    Raises ProvisionError when the file is missing, damaged, or written for a later version; what is wrong inside a table is said when it is made.
    """
    tables = read(path)
    return Facts({name: partial(_made, path, make) for name, make in _makers(tables).items()})


def _made(path: Path, make: _Maker) -> Any:
    try:
        return make()
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise damaged(path, error) from None


def _makers(tables: _Tables) -> dict[str, _Maker]:
    """Return what makes each table; one object of evidence serves all rows that share it."""
    every = _reader(tables)
    return {
        "torch": lambda: every(_torch, "torch"),
        "compile_pythons": lambda: {row.python: row for row in every(rows.CompilePython, "torch", "compile")},
        "transformers": lambda: every(TransformersRun, "transformers"),
        "trainer_calls": lambda: every(packages.TrainerCall, "transformers", "trainer_calls"),
        "precision_checks": lambda: every(packages.PrecisionCheck, "transformers", "precision_checks"),
        "transformers_read": lambda: tuple(dict.fromkeys(end for row in tables["transformers"]["rows"] for end in (row["first"], row["last"]))),
        "cards": lambda: every(Card, "gpus"),
        "pythons": lambda: every(PythonVersion, "pythons"),
        "replaced": lambda: {row.name: row for row in every(Replaced, "names", "replaced")},
        "wheels": lambda: {row["file"]: row["sha256"] for row in tables["wheels"]["rows"]},
        "torch_family": lambda: frozenset(tables["torch"]["family"]),
        "flavoured": lambda: frozenset(tables["torch"]["flavoured"]),
        "torch_hosts": lambda: frozenset(tables["torch"]["hosts"]),
        "popular": lambda: frozenset(tables["names"]["popular"]),
        "seen": lambda: frozenset(tables["names"]["seen"]),
        "accelerate_extras": lambda: frozenset(tables["transformers"]["brings_accelerate"]["extras"]),
        "accelerate_packages": lambda: frozenset(
            row["package"] for row in tables["extensions"]["brings"] if "accelerate" in row["brings"] and "[" not in row["package"]
        ),
        "index_pattern": lambda: tables["torch"]["index"],
        "runs": lambda: _by_package(every(packages.Run, "packages", "runs")),
        "wheel_pythons": lambda: _by_package(every(packages.WheelPythons, "wheel_pythons")),
        "arguments": lambda: {row.argument: row for row in every(packages.Argument, "training_arguments")},
        "optimizer_names": lambda: {row.optimizer: row for row in every(packages.OptimizerName, "training_arguments", "optimizers")},
        "arguments_read": lambda: tuple(tables["training_arguments"]["read"]),
        **_hardware(every),
        **_places(every),
        **_extensions(every),
        **_variables(every),
    }


def _by_package(rows: Iterable[_Of]) -> dict[str, tuple[_Of, ...]]:
    runs: dict[str, list[_Of]] = {}
    for run in rows:
        runs.setdefault(run.package, []).append(run)
    return {name: tuple(of) for name, of in runs.items()}


def _hardware(every: Callable[..., tuple[Any, ...]]) -> dict[str, _Maker]:
    return {
        "builds": lambda: {f"{row.release}:{row.flavour}:{row.platform}": row for row in every(_build, "builds")},
        "toolkits": lambda: {row.cuda: row for row in every(_toolkit, "cuda", "toolkits")},
        "drivers": lambda: every(rows.DriverBranch, "cuda", "drivers"),
        "capabilities": lambda: {row.cc: row for row in every(rows.Capability, "cuda", "capabilities")},
        "cudnn": lambda: every(rows.CudnnLine, "cuda", "cudnn"),
        "mps": lambda: {row.precision: row for row in every(rows.MpsPrecision, "mps")},
    }


def _places(every: Callable[..., tuple[Any, ...]]) -> dict[str, _Maker]:
    return {
        "machines": lambda: {row.name: row for row in every(places.Machine, "machines")},
        "attachments": lambda: every(places.Attachment, "machines", "attach"),
        "images": lambda: {row.family: row for row in every(places.Image, "images")},
        "image_drivers": lambda: every(places.ImageDriver, "images", "drivers"),
        "image_changes": lambda: every(places.ImageChange, "images", "changes"),
        "metadata_keys": lambda: every(places.MetadataKey, "workbench", "metadata"),
        "reserved_labels": lambda: {row.key: row for row in every(places.ReservedLabel, "workbench", "labels")},
        "disks": lambda: {row.type: row for row in every(places.DiskKind, "workbench", "disks")},
        "limits": lambda: {row.name: row for row in every(places.Limit, "workbench", "limits")},
        "systems": lambda: {row.os: row for row in every(places.System, "images", "systems")},
        "runtimes": lambda: {row.runtime: row for row in every(places.Runtime, "colab", "runtimes")},
        "shapes": lambda: every(places.Shape, "colab", "shapes"),
        "conditions": lambda: {row.name: row for row in every(places.Condition, "colab", "conditions")},
        "protected": lambda: {row.package: row for row in every(places.Protected, "colab", "protected")},
    }


def _extensions(every: Callable[..., tuple[Any, ...]]) -> dict[str, _Maker]:
    return {
        "flash_attention": lambda: every(packages.FlashAttentionWheels, "extensions", "flash_attn"),
        "bitsandbytes": lambda: every(packages.BitsandbytesBinaries, "extensions", "bitsandbytes"),
        "cuda_wheels": lambda: _by_package(every(packages.CudaWheels, "extensions", "cuda_wheels")),
        "capability_floors": lambda: every(packages.CapabilityFloor, "extensions", "capability_floors"),
        "cuda_only": lambda: every(packages.CudaOnly, "extensions", "cuda_only"),
        "source_only": lambda: {row.package: row for row in every(packages.SourceOnly, "extensions", "sdist_only")},
        "numpy_floors": lambda: {row.package: row for row in every(packages.NumpyFloor, "extensions", "numpy2")},
        "undeclared": lambda: every(packages.Undeclared, "undeclared"),
        "platforms": lambda: {row.package: row for row in every(packages.Platforms, "extensions", "platforms")},
        "strategy_floors": lambda: every(packages.StrategyFloor, "extensions", "strategies"),
        "trackers": lambda: {row.tracker: row for row in every(packages.Tracker, "extensions", "trackers")},
        "bringers": lambda: {row.package: row for row in every(packages.Bringer, "extensions", "brings")},
        "uses_transformers": lambda: {row.package: row for row in every(packages.TransformersUse, "extensions", "uses_transformers")},
        "subclass_arguments": lambda: {row.argument: row for row in every(packages.SubclassArgument, "extensions", "subclass")},
        "one_of": lambda: every(packages.OneOf, "extensions", "one_of"),
        "optimizers": lambda: {row.name: row for row in every(packages.OptimizerState, "memory", "optimizers")},
        "overhead": lambda: {row.name: row for row in every(packages.Overhead, "memory", "overhead")},
    }


def _variables(every: Callable[..., tuple[Any, ...]]) -> dict[str, _Maker]:
    return {
        "variables": lambda: _by_name(every(variables.Variable, "variables")),
        "folders": lambda: {row.variable: row for row in every(variables.FolderVariable, "variables", "folders")},
        "allocator_options": lambda: {row.option: row for row in every(variables.AllocatorOption, "variables", "allocator")},
    }


def _by_name(rows: Iterable[variables.Variable]) -> dict[str, tuple[variables.Variable, ...]]:
    named: dict[str, tuple[variables.Variable, ...]] = {}
    for row in rows:
        named[row.variable] = (*named.get(row.variable, ()), row)
    return named


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
