"""Fact tables: compiled JSON files whose rows become typed rows with evidence at first use.

A table is named as `provision facts` names it ("machines", "cuda.toolkits"), and declared once in
`FactTables` with the type of its rows. The key of a mapping is the key that the table itself
declares under `keys`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar

from provision.errors import ProvisionError
from provision.facts.evidence import Evidence
from provision.facts.schema_packages import (
    BitsandbytesBinaries,
    CapabilityFloor,
    CudaOnlyUse,
    CudaWheels,
    ExclusivePackages,
    FlashAttentionWheels,
    KnownDependencies,
    MemoryOverhead,
    NumpyFloor,
    OptimizerName,
    OptimizerState,
    PlatformWheels,
    PrecisionCheck,
    ReleaseRange,
    ReplacedPackage,
    StrategyFloor,
    SubclassArgument,
    Tracker,
    TrainerCall,
    TrainingArgument,
    TransformersReleases,
    TransformersUse,
    UndeclaredRequirement,
    WheelPythons,
)
from provision.facts.schema_platforms import (
    ColabProperty,
    ColabRuntime,
    ColabShape,
    DiskType,
    GpuAttachment,
    ImageChange,
    ImageDriver,
    ImageFamily,
    MachineType,
    MetadataKey,
    OperatingSystem,
    ProtectedPackage,
    ReservedLabel,
    WorkbenchLimit,
)
from provision.facts.schema_sources import BroughtSource, SourceOnlyPackage, WheelReleases
from provision.facts.schema_torch import (
    Card,
    ComputeCapability,
    CudaToolkit,
    CudnnSupport,
    DriverBranch,
    MpsPrecision,
    PtxFailure,
    PythonVersion,
    TorchBuild,
    TorchCompilePython,
    TorchRelease,
    UnsupportedAccelerator,
)
from provision.facts.schema_variables import (
    AllocatorOption,
    FolderVariable,
    VariableEffect,
)
from provision.facts.schema_vertex import (
    JobMachineSeries,
    JobProperty,
    TrainingQuota,
    TrainingRegion,
)
from provision.facts.schema_windows import ReadReleases, ReleaseWindow
from provision.facts.tables_in_use import INSTALLED_TABLES, tables_in_use

SCHEMA_VERSION = 2
EVIDENCE_FIELDS = Evidence._fields
MALFORMED = (KeyError, TypeError, ValueError, IndexError, AttributeError)
"""Exceptions that a table of an unexpected form raises when its rows are built."""
_Row = TypeVar("_Row")
_Content = TypeVar("_Content")


class CompiledTables:
    """A file of compiled tables. Rows with equal evidence share one `Evidence` object."""

    def __init__(self, path: Path, text: bytes | None = None) -> None:
        """Read the file, or `text` as its content.

        Raises:
            ProvisionError: the file is missing, damaged, or written for a later version.
        """
        self._path = path
        self._content = read_compiled(path, text)
        self._evidence: dict[tuple[str, str, str, int], Evidence] = {}

    def build(self, function: Callable[[CompiledTables], _Content]) -> _Content:
        """Return the result of a function that reads tables.

        Raises:
            ProvisionError: a table does not have the form that the function expects.
        """
        try:
            return function(self)
        except MALFORMED as error:
            raise damaged_tables_error(self._path, error) from None

    def value(self, name: str) -> Any:
        """Return the value at a dotted name, such as "torch.family"."""
        value: Any = self._content
        for part in name.split("."):
            value = value[part]
        return value

    def keyed_rows(
        self, name: str, row_type: Callable[..., _Row]
    ) -> tuple[tuple[tuple[str, ...], _Row], ...]:
        """Return the rows of a table, each with the values of the key columns it declares."""
        table, part = self._find(name)
        columns = table["keys"][part]
        return tuple(
            (tuple(row[column] for column in columns), row_type(**self._row_values(row, table)))
            for row in expand_rows(table, part)
        )

    def rows(self, name: str, row_type: Callable[..., _Row]) -> tuple[_Row, ...]:
        """Return the rows of a table in the order of the file."""
        table, part = self._find(name)
        return tuple(row_type(**self._row_values(row, table)) for row in expand_rows(table, part))

    def _find(self, name: str) -> tuple[dict[str, Any], str]:
        """Return a table's content and the key of its rows; a file of one table has no names."""
        stem, _, part = name.partition(".")
        return (self._content[stem] if stem else self._content), part or "rows"

    def _row_values(self, row: Mapping[str, Any], table: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row's fields with lists as tuples and with its own or the table's evidence."""
        values: dict[str, Any] = {
            key: tuple(value) if type(value) is list else value for key, value in row.items()
        }
        fields: tuple[str, str, str, int] = (
            values.pop("source", table["source"]),
            values.pop("as_of", table["as_of"]),
            values.pop("confidence", table["confidence"]),
            values.pop("sources_count", table["sources_count"]),
        )
        evidence = self._evidence.get(fields)
        if evidence is None:
            evidence = self._evidence[fields] = Evidence(*fields)
        values["evidence"] = evidence
        return values


def read_compiled(path: Path, text: bytes | None = None) -> dict[str, Any]:
    """Return the content of a compiled file, or of `text` in its place.

    Raises:
        ProvisionError: the file is missing, not a JSON object, or written for a later version.
    """
    try:
        tables = dict(json.loads(path.read_bytes() if text is None else text))
        is_newer = tables["schema"] > SCHEMA_VERSION
    except (OSError, *MALFORMED) as error:
        raise damaged_tables_error(path, error) from None
    if is_newer:
        raise ProvisionError(
            "cannot read the fact tables of this installation",
            why=f"{path.name} was written for a later version of provision",
            hint="update or reinstall provision; its program and its fact tables are from "
            "different versions",
        )
    return tables


def damaged_tables_error(path: Path, error: Exception) -> ProvisionError:
    """Return the error for a compiled file that cannot be used."""
    if tables_in_use.get() in path.parents and tables_in_use.get() != INSTALLED_TABLES:
        return ProvisionError(
            "cannot read the fact tables of this project",
            why=f"{path.name}: {type(error).__name__}",
            hint="run `provision facts fetch`",
        )
    return ProvisionError(
        "cannot read the fact tables of this installation",
        why=f"{path.name}: {type(error).__name__}",
        hint="reinstall provision",
    )


def expand_rows(table: Mapping[str, Any], part: str = "rows") -> list[dict[str, Any]]:
    """Return the rows of a table as mappings.

    Rows are stored as mappings, or as lists under `columns`; the column `by` of the latter names
    an entry of the table's `by`, which has the evidence that many rows share.
    """
    if "columns" not in table:
        return list(table[part])
    shared = table.get("by", {})
    rows = [dict(zip(table["columns"], row, strict=True)) for row in table[part]]
    for row in rows:
        row.update(shared.get(row.pop("by", None), {}))
    return rows


class Table(Generic[_Content]):
    """A table that is built at first use and then stored: most specs need few tables."""

    def __init__(self, build: Callable[[CompiledTables], _Content]) -> None:
        self._build = build

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, facts: Any, owner: type) -> _Content:
        """Build the table and store it in the instance, which hides this descriptor.

        Raises:
            ProvisionError: the table is damaged.
        """
        content: _Content = facts.compiled.build(self._build)
        facts.__dict__[self._name] = content
        return content


def rows(name: str, row_type: Callable[..., _Row]) -> Table[tuple[_Row, ...]]:
    """Declare a table that is used in the order of its rows."""
    return Table(lambda compiled: compiled.rows(name, row_type))


def keyed(name: str, row_type: Callable[..., _Row]) -> Table[Mapping[str, _Row]]:
    """Declare a table whose rows are looked up by their key; its parts are joined by colons."""
    return Table(
        lambda compiled: {":".join(key): row for key, row in compiled.keyed_rows(name, row_type)}
    )


def grouped(name: str, row_type: Callable[..., _Row]) -> Table[Mapping[str, tuple[_Row, ...]]]:
    """Declare a table whose rows are looked up by the first part of their key."""

    def build(compiled: CompiledTables) -> Mapping[str, tuple[_Row, ...]]:
        groups: dict[str, list[_Row]] = {}
        for key, row in compiled.keyed_rows(name, row_type):
            groups.setdefault(key[0], []).append(row)
        return {first: tuple(group) for first, group in groups.items()}

    return Table(build)


def names(name: str) -> Table[frozenset[str]]:
    """Declare a set of names."""
    return Table(lambda compiled: frozenset(compiled.value(name)))


class FactTables:
    """All tables that the program loads.

    Releases are in ascending order, and package names are canonical (PEP 503).
    """

    compiled: CompiledTables

    # torch, CUDA and cards
    torch = rows("torch", TorchRelease)
    torch_family = names("torch.family")
    torch_hosts = names("torch.hosts")
    flavoured = names("torch.flavoured")
    """Packages with one build per CUDA flavour, which their version names (+cu128)."""
    index_pattern = Table(lambda compiled: str(compiled.value("torch.index")))
    compile_pythons = keyed("torch.compile", TorchCompilePython)
    """By Python; torch.compile works with every torch on a Python without a row."""
    builds = keyed("builds", TorchBuild.from_columns)
    """By "release:flavour:platform", such as "2.11.0:cu128:linux-x86_64"."""
    toolkits = keyed("cuda.toolkits", CudaToolkit.from_columns)
    drivers = rows("cuda.drivers", DriverBranch)
    capabilities = keyed("cuda.capabilities", ComputeCapability)
    cudnn = rows("cuda.cudnn", CudnnSupport)
    ptx_failures = keyed("cuda.ptx_failures", PtxFailure)
    """By "package:capability", such as "tensorflow:12.0"."""
    cards = rows("gpus", Card)
    unsupported = rows("gpus.unsupported", UnsupportedAccelerator)
    mps = keyed("mps", MpsPrecision)
    """By precision; Apple silicon does not have a precision without a row."""
    pythons = rows("pythons", PythonVersion)

    # machines, images and Colab
    machines = keyed("machines", MachineType)
    attachments = rows("machines.attach", GpuAttachment)
    images = keyed("images", ImageFamily)
    image_drivers = rows("images.drivers", ImageDriver)
    image_changes = rows("images.changes", ImageChange)
    systems = keyed("images.systems", OperatingSystem)
    metadata_keys = rows("workbench.metadata", MetadataKey)
    reserved_labels = keyed("workbench.labels", ReservedLabel)
    disks = keyed("workbench.disks", DiskType)
    limits = keyed("workbench.limits", WorkbenchLimit)
    """Limits of Workbench instances: "boot disk", "data disk", "largest disk", "shortest idle",
    "longest idle", "shm share".
    """
    runtimes = keyed("colab.runtimes", ColabRuntime)
    shapes = rows("colab.shapes", ColabShape)
    conditions = keyed("colab.conditions", ColabProperty)
    """Properties of every Colab machine: "host driver", "runtime lifetime" (months), "free GPU",
    "enterprise Pythons", "shm" (GiB), "nvcc", "gcc", "pip".
    """
    protected = keyed("colab.protected", ProtectedPackage)
    training_regions = keyed("vertex.training", TrainingRegion)
    job_series = keyed("vertex.machines", JobMachineSeries)
    training_quotas = keyed("vertex.quotas", TrainingQuota)
    job_properties = keyed("vertex.properties", JobProperty)
    """Properties of custom jobs: "price factor", "scarce GPUs", "reserved GPUs", "flex start GPUs",
    "peering exceptions".
    """

    # packages
    runs = grouped("packages.runs", ReleaseRange)
    wheel_pythons = grouped("wheel_pythons", WheelPythons)
    cuda_wheels = grouped("cuda_wheels", CudaWheels)
    flash_attention = rows("extensions.flash_attn", FlashAttentionWheels)
    bitsandbytes = rows("extensions.bitsandbytes", BitsandbytesBinaries)
    capability_floors = rows("extensions.capability_floors", CapabilityFloor)
    cuda_only = rows("extensions.cuda_only", CudaOnlyUse)
    source_only = keyed("extensions.sdist_only", SourceOnlyPackage)
    wheel_releases = keyed("source_only", WheelReleases.from_columns)
    """Packages of which some releases have only a source distribution."""
    brought_sources = grouped("source_only.brings", BroughtSource.from_columns)
    """By the package that requires one of `wheel_releases`."""
    numpy_floors = keyed("numpy_builds", NumpyFloor)
    undeclared = rows("undeclared", UndeclaredRequirement)
    windows = rows("windows", ReleaseWindow.from_columns)
    windows_read = keyed("windows.read", ReadReleases.from_columns)
    platforms = keyed("extensions.platforms", PlatformWheels)
    one_of = rows("extensions.one_of", ExclusivePackages)
    bringers = keyed("extensions.brings", KnownDependencies)
    """By "package" or "package[extra]"."""
    popular = names("names.popular")
    seen = names("names.seen")
    replaced = keyed("names.replaced", ReplacedPackage)
    wheels = Table(
        lambda compiled: {
            str(row["file"]): str(row["sha256"]) for row in compiled.value("wheels.rows")
        }
    )
    """File name to sha256, each confirmed by a source other than the file's own index."""

    # training
    transformers = rows("transformers", TransformersReleases)
    trainer_calls = rows("transformers.trainer_calls", TrainerCall)
    precision_checks = rows("transformers.precision_checks", PrecisionCheck)
    accelerate_extras = names("transformers.brings_accelerate.extras")
    uses_transformers = keyed("extensions.uses_transformers", TransformersUse)
    strategy_floors = rows("extensions.strategies", StrategyFloor)
    trackers = keyed("extensions.trackers", Tracker)
    arguments = keyed("training_arguments", TrainingArgument)
    """Arguments that a release of TrainingArguments takes or took."""
    subclass_arguments = keyed("extensions.subclass", SubclassArgument)
    optimizer_names = keyed("training_arguments.optimizers", OptimizerName)
    arguments_read = Table(
        lambda compiled: tuple(map(str, compiled.value("training_arguments.read")))
    )
    """The transformers releases whose TrainingArguments were read, oldest first."""
    optimizers = keyed("memory.optimizers", OptimizerState)
    overhead = keyed("memory.overhead", MemoryOverhead)
    variables = grouped("variables", VariableEffect)
    folders = keyed("variables.folders", FolderVariable)
    allocator_options = keyed("variables.allocator", AllocatorOption)

    @cached_property
    def transformers_read(self) -> tuple[str, ...]:
        """The first and the last release of each range of transformers releases, oldest first."""
        ends = (end for row in self.transformers for end in (row.first, row.last))
        return tuple(dict.fromkeys(ends))

    @cached_property
    def windows_of(self) -> Mapping[str, tuple[ReleaseWindow, ...]]:
        """The certain windows of each package, by the package that uses a name."""
        groups: dict[str, list[ReleaseWindow]] = {}
        for window in filter(lambda window: window.is_certain, self.windows):
            groups.setdefault(window.package, []).append(window)
        return {package: tuple(group) for package, group in groups.items()}

    @cached_property
    def accelerate_packages(self) -> frozenset[str]:
        """The packages that depend on accelerate without an extra."""
        rows = self.bringers.items()
        return frozenset(
            name for name, row in rows if "accelerate" in row.brings and "[" not in name
        )
