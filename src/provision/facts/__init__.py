"""What the world is known to be: tables of sourced, dated facts and the arithmetic over them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, TypeVar

from provision.facts import schema_packages, schema_platforms, schema_variables
from provision.facts import schema_torch as rows
from provision.facts.facts import Facts, cuda_of, flavour_of
from provision.facts.lazy_tables import damaged_tables_error, read_compiled, to_row_values
from provision.facts.schema_torch import (
    Card,
    Evidence,
    PythonVersion,
    ReplacedPackage,
    TorchBuild,
    TorchRelease,
    TransformersReleases,
    VersionFloor,
)

__all__ = [
    "Card",
    "Evidence",
    "Facts",
    "PythonVersion",
    "ReplacedPackage",
    "TorchBuild",
    "TorchRelease",
    "TransformersReleases",
    "VersionFloor",
    "cuda_of",
    "flavour_of",
    "load_facts",
]
COMPILED_TABLES = Path(__file__).with_name("compiled.json")
_Row = TypeVar("_Row")
_Of = TypeVar("_Of", schema_packages.ReleaseRange, schema_packages.WheelPythons)
_Tables = dict[str, dict[str, Any]]
_Maker = Callable[[], Any]


@lru_cache(maxsize=8)
def load_facts(path: Path = COMPILED_TABLES) -> Facts:
    """Return the compiled tables; each is made when it is first asked for.

    Raises ProvisionError when the file is missing, damaged, or written for a later version; what
    is wrong inside a table is said when it is made.
    """
    tables = read_compiled(path)
    return Facts(
        {name: partial(_make_table, path, make) for name, make in _table_makers(tables).items()}
    )


def _make_table(path: Path, make: _Maker) -> Any:
    try:
        return make()
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise damaged_tables_error(path, error) from None


def _table_makers(tables: _Tables) -> dict[str, _Maker]:
    """Return what makes each table; one object of evidence serves all rows that share it."""
    every = _reader(tables)
    return {
        "torch": lambda: every(_torch, "torch"),
        "compile_pythons": lambda: {
            row.python: row for row in every(rows.CompileSupport, "torch", "compile")
        },
        "transformers": lambda: every(TransformersReleases, "transformers"),
        "trainer_calls": lambda: every(
            schema_packages.TrainerCall, "transformers", "trainer_calls"
        ),
        "precision_checks": lambda: every(
            schema_packages.PrecisionCheck, "transformers", "precision_checks"
        ),
        "transformers_read": lambda: tuple(
            dict.fromkeys(
                end for row in tables["transformers"]["rows"] for end in (row["first"], row["last"])
            )
        ),
        "cards": lambda: every(Card, "gpus"),
        "pythons": lambda: every(PythonVersion, "pythons"),
        "replaced": lambda: {row.name: row for row in every(ReplacedPackage, "names", "replaced")},
        "wheels": lambda: {row["file"]: row["sha256"] for row in tables["wheels"]["rows"]},
        "torch_family": lambda: frozenset(tables["torch"]["family"]),
        "flavoured": lambda: frozenset(tables["torch"]["flavoured"]),
        "torch_hosts": lambda: frozenset(tables["torch"]["hosts"]),
        "popular": lambda: frozenset(tables["names"]["popular"]),
        "seen": lambda: frozenset(tables["names"]["seen"]),
        "accelerate_extras": lambda: frozenset(
            tables["transformers"]["brings_accelerate"]["extras"]
        ),
        "accelerate_packages": lambda: frozenset(
            row["package"]
            for row in tables["extensions"]["brings"]
            if "accelerate" in row["brings"] and "[" not in row["package"]
        ),
        "index_pattern": lambda: tables["torch"]["index"],
        "runs": lambda: _by_package(every(schema_packages.ReleaseRange, "packages", "runs")),
        "wheel_pythons": lambda: _by_package(every(schema_packages.WheelPythons, "wheel_pythons")),
        "arguments": lambda: {
            row.argument: row
            for row in every(schema_packages.TrainingArgument, "training_arguments")
        },
        "optimizer_names": lambda: {
            row.optimizer: row
            for row in every(schema_packages.OptimizerName, "training_arguments", "optimizers")
        },
        "arguments_read": lambda: tuple(tables["training_arguments"]["read"]),
        **_hardware_tables(every),
        **_platform_tables(every),
        **_extension_tables(every),
        **_variable_tables(every),
    }


def _by_package(rows: Iterable[_Of]) -> dict[str, tuple[_Of, ...]]:
    runs: dict[str, list[_Of]] = {}
    for run in rows:
        runs.setdefault(run.package, []).append(run)
    return {name: tuple(of) for name, of in runs.items()}


def _hardware_tables(every: Callable[..., tuple[Any, ...]]) -> dict[str, _Maker]:
    return {
        "builds": lambda: {
            f"{row.release}:{row.flavour}:{row.platform}": row for row in every(_build, "builds")
        },
        "toolkits": lambda: {row.cuda: row for row in every(_toolkit, "cuda", "toolkits")},
        "drivers": lambda: every(rows.DriverBranch, "cuda", "drivers"),
        "capabilities": lambda: {
            row.cc: row for row in every(rows.ComputeCapability, "cuda", "capabilities")
        },
        "cudnn": lambda: every(rows.CudnnSupport, "cuda", "cudnn"),
        "mps": lambda: {row.precision: row for row in every(rows.MpsPrecision, "mps")},
    }


def _platform_tables(every: Callable[..., tuple[Any, ...]]) -> dict[str, _Maker]:
    return {
        "machines": lambda: {
            row.name: row for row in every(schema_platforms.MachineType, "machines")
        },
        "attachments": lambda: every(schema_platforms.GpuAttachment, "machines", "attach"),
        "images": lambda: {
            row.family: row for row in every(schema_platforms.ImageFamily, "images")
        },
        "image_drivers": lambda: every(schema_platforms.ImageDriver, "images", "drivers"),
        "image_changes": lambda: every(schema_platforms.ImageChange, "images", "changes"),
        "metadata_keys": lambda: every(schema_platforms.MetadataKey, "workbench", "metadata"),
        "reserved_labels": lambda: {
            row.key: row for row in every(schema_platforms.ReservedLabel, "workbench", "labels")
        },
        "disks": lambda: {
            row.type: row for row in every(schema_platforms.DiskType, "workbench", "disks")
        },
        "limits": lambda: {
            row.name: row for row in every(schema_platforms.WorkbenchLimit, "workbench", "limits")
        },
        "systems": lambda: {
            row.os: row for row in every(schema_platforms.OperatingSystem, "images", "systems")
        },
        "runtimes": lambda: {
            row.runtime: row for row in every(schema_platforms.ColabRuntime, "colab", "runtimes")
        },
        "shapes": lambda: every(schema_platforms.ColabShape, "colab", "shapes"),
        "conditions": lambda: {
            row.name: row for row in every(schema_platforms.ColabProperty, "colab", "conditions")
        },
        "protected": lambda: {
            row.package: row
            for row in every(schema_platforms.ProtectedPackage, "colab", "protected")
        },
    }


def _extension_tables(every: Callable[..., tuple[Any, ...]]) -> dict[str, _Maker]:
    return {
        "flash_attention": lambda: every(
            schema_packages.FlashAttentionWheels, "extensions", "flash_attn"
        ),
        "bitsandbytes": lambda: every(
            schema_packages.BitsandbytesBinaries, "extensions", "bitsandbytes"
        ),
        "cuda_wheels": lambda: _by_package(
            every(schema_packages.CudaWheels, "extensions", "cuda_wheels")
        ),
        "capability_floors": lambda: every(
            schema_packages.CapabilityFloor, "extensions", "capability_floors"
        ),
        "cuda_only": lambda: every(schema_packages.CudaOnlyUse, "extensions", "cuda_only"),
        "source_only": lambda: {
            row.package: row
            for row in every(schema_packages.SourceOnlyPackage, "extensions", "sdist_only")
        },
        "numpy_floors": lambda: {
            row.package: row for row in every(schema_packages.NumpyFloor, "extensions", "numpy2")
        },
        "undeclared": lambda: every(schema_packages.UndeclaredRequirement, "undeclared"),
        "platforms": lambda: {
            row.package: row
            for row in every(schema_packages.PlatformWheels, "extensions", "platforms")
        },
        "strategy_floors": lambda: every(schema_packages.StrategyFloor, "extensions", "strategies"),
        "trackers": lambda: {
            row.tracker: row for row in every(schema_packages.Tracker, "extensions", "trackers")
        },
        "bringers": lambda: {
            row.package: row
            for row in every(schema_packages.KnownDependencies, "extensions", "brings")
        },
        "uses_transformers": lambda: {
            row.package: row
            for row in every(schema_packages.TransformersUse, "extensions", "uses_transformers")
        },
        "subclass_arguments": lambda: {
            row.argument: row
            for row in every(schema_packages.SubclassArgument, "extensions", "subclass")
        },
        "one_of": lambda: every(schema_packages.ExclusivePackages, "extensions", "one_of"),
        "optimizers": lambda: {
            row.name: row for row in every(schema_packages.OptimizerState, "memory", "optimizers")
        },
        "overhead": lambda: {
            row.name: row for row in every(schema_packages.MemoryOverhead, "memory", "overhead")
        },
    }


def _variable_tables(every: Callable[..., tuple[Any, ...]]) -> dict[str, _Maker]:
    return {
        "variables": lambda: _by_name(every(schema_variables.VariableEffect, "variables")),
        "folders": lambda: {
            row.variable: row
            for row in every(schema_variables.FolderVariable, "variables", "folders")
        },
        "allocator_options": lambda: {
            row.option: row
            for row in every(schema_variables.AllocatorOption, "variables", "allocator")
        },
    }


def _by_name(
    rows: Iterable[schema_variables.VariableEffect],
) -> dict[str, tuple[schema_variables.VariableEffect, ...]]:
    named: dict[str, tuple[schema_variables.VariableEffect, ...]] = {}
    for row in rows:
        named[row.variable] = (*named.get(row.variable, ()), row)
    return named


def _reader(tables: _Tables) -> Callable[..., tuple[Any, ...]]:
    shared: dict[tuple[str, str, str], Evidence] = {}

    def every(kind: Callable[..., _Row], table: str, name: str = "rows") -> tuple[_Row, ...]:
        return tuple(
            kind(**to_row_values(row, tables[table], shared)) for row in tables[table][name]
        )

    return every


def _torch(**row: Any) -> TorchRelease:
    return TorchRelease(**{"pythons_aarch64": row["pythons"], **row})


def _build(**row: Any) -> TorchBuild:
    return TorchBuild(**{**row, "sm": tuple(row["sm"].split())})


def _toolkit(**row: Any) -> rows.CudaToolkit:
    return rows.CudaToolkit(**{**row, "capabilities": tuple((row["capabilities"] or "").split())})
