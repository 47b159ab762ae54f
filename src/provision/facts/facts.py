"""All tables in one hand, and what they answer; an unknown thing is answered with None, never with
a guess.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache, partial
from typing import Any

from provision.facts import compatibility
from provision.facts import memory as reckoning
from provision.facts.schema_packages import (
    BitsandbytesBinaries,
    CapabilityFloor,
    CudaOnlyUse,
    CudaWheels,
    DeclaredRequirement,
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
    SourceOnlyPackage,
    StrategyFloor,
    SubclassArgument,
    Tracker,
    TrainerCall,
    TrainingArgument,
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
from provision.facts.schema_torch import (
    Card,
    CompileSupport,
    ComputeCapability,
    CudaToolkit,
    CudnnSupport,
    DriverBranch,
    MpsPrecision,
    PythonVersion,
    ReplacedPackage,
    TorchBuild,
    TorchRelease,
    TransformersReleases,
    VersionFloor,
)
from provision.facts.schema_variables import AllocatorOption, FolderVariable, VariableEffect
from provision.facts.versions import parse_version, require_version


class Facts:
    """All tables. Releases stand oldest first; package names are canonical (PEP 503); an unknown
    thing is answered with None.

    `tables` makes each one. It is made when it is first asked for: of most tables, most specs
    ask nothing.
    """

    torch: tuple[TorchRelease, ...]
    compile_pythons: Mapping[str, CompileSupport]
    """By Python; a Python without a row needs no particular torch for torch.compile."""
    transformers: tuple[TransformersReleases, ...]
    precision_checks: tuple[PrecisionCheck, ...]
    trainer_calls: tuple[TrainerCall, ...]
    transformers_read: tuple[str, ...]
    """The first and the last release of each run, oldest first."""
    cards: tuple[Card, ...]
    pythons: tuple[PythonVersion, ...]
    replaced: Mapping[str, ReplacedPackage]
    wheels: Mapping[str, str]
    """File name to sha256, each confirmed by a source other than the file's own index."""
    torch_family: frozenset[str]
    flavoured: frozenset[str]
    """The packages that are built once per CUDA flavour and carry its tag (+cu128) in their
    version.
    """
    torch_hosts: frozenset[str]
    popular: frozenset[str]
    seen: frozenset[str]
    accelerate_extras: frozenset[str]
    accelerate_packages: frozenset[str]
    """The packages that bring accelerate without an extra."""
    bringers: Mapping[str, KnownDependencies]
    """By "package" or "package[extra]"."""
    uses_transformers: Mapping[str, TransformersUse]
    index_pattern: str
    builds: Mapping[str, TorchBuild]
    """By "release:flavour:platform", as in "2.11.0:cu128:linux-x86_64"."""
    toolkits: Mapping[str, CudaToolkit]
    drivers: tuple[DriverBranch, ...]
    capabilities: Mapping[str, ComputeCapability]
    cudnn: tuple[CudnnSupport, ...]
    mps: Mapping[str, MpsPrecision]
    """By precision; one without a row is not to be had on Apple silicon."""
    machines: Mapping[str, MachineType]
    attachments: tuple[GpuAttachment, ...]
    images: Mapping[str, ImageFamily]
    image_drivers: tuple[ImageDriver, ...]
    image_changes: tuple[ImageChange, ...]
    metadata_keys: tuple[MetadataKey, ...]
    reserved_labels: Mapping[str, ReservedLabel]
    disks: Mapping[str, DiskType]
    limits: Mapping[str, WorkbenchLimit]
    """Numbers that hold for Workbench instances: "boot disk", "data disk", "largest disk",
    "shortest idle", "longest idle", "shm share".
    """
    systems: Mapping[str, OperatingSystem]
    runtimes: Mapping[str, ColabRuntime]
    shapes: tuple[ColabShape, ...]
    conditions: Mapping[str, ColabProperty]
    """What holds on every Colab machine: "host driver", "runtime lifetime" (months), "free GPU",
    "enterprise Pythons", "shm" (GiB), "nvcc", "gcc", "pip".
    """
    protected: Mapping[str, ProtectedPackage]
    runs: Mapping[str, tuple[ReleaseRange, ...]]
    wheel_pythons: Mapping[str, tuple[WheelPythons, ...]]
    flash_attention: tuple[FlashAttentionWheels, ...]
    bitsandbytes: tuple[BitsandbytesBinaries, ...]
    cuda_wheels: Mapping[str, tuple[CudaWheels, ...]]
    """By package, oldest releases first."""
    capability_floors: tuple[CapabilityFloor, ...]
    cuda_only: tuple[CudaOnlyUse, ...]
    source_only: Mapping[str, SourceOnlyPackage]
    numpy_floors: Mapping[str, NumpyFloor]
    undeclared: tuple[UndeclaredRequirement, ...]
    platforms: Mapping[str, PlatformWheels]
    one_of: tuple[ExclusivePackages, ...]
    strategy_floors: tuple[StrategyFloor, ...]
    trackers: Mapping[str, Tracker]
    arguments: Mapping[str, TrainingArgument]
    """What TrainingArguments takes, or took."""
    subclass_arguments: Mapping[str, SubclassArgument]
    optimizer_names: Mapping[str, OptimizerName]
    arguments_read: tuple[str, ...]
    """The transformers releases whose TrainingArguments were read, oldest first."""
    optimizers: Mapping[str, OptimizerState]
    overhead: Mapping[str, MemoryOverhead]
    variables: Mapping[str, tuple[VariableEffect, ...]]
    folders: Mapping[str, FolderVariable]
    allocator_options: Mapping[str, AllocatorOption]

    def __init__(self, tables: Mapping[str, Callable[[], Any]]) -> None:
        self._tables = tables

    def __getattr__(self, name: str) -> Any:
        """Make a table. Raises ProvisionError when it is damaged."""
        if name.startswith("_") or name not in self._tables:
            raise AttributeError(name)
        table = self._tables[name]()
        setattr(self, name, table)
        return table

    def with_tables(self, **tables: Any) -> Facts:
        """Return the same facts with other tables in place of some."""
        return Facts(
            {**self._tables, **{name: partial(_identity, table) for name, table in tables.items()}}
        )

    def torch_release(self, version: str) -> TorchRelease | None:
        """Return the release that `version` ("2.13", "2.13.0+cu130") is, or None when the table has
        no such release.
        """
        return self._torch_by_release.get(_release(version))

    def build(self, torch: str, flavour: str, platform: str = "linux-x86_64") -> TorchBuild | None:
        """Return what a CUDA build of torch was compiled for; None when the table has no such
        build, which a CPU build never is.
        """
        release = self.torch_release(torch)
        return (
            None if release is None else self.builds.get(f"{release.release}:{flavour}:{platform}")
        )

    def code_for(self, card: Card, build: TorchBuild) -> compatibility.DeviceCode | None:
        """Return the code of a build that a card would run, machine code before PTX; None when it
        has none. See `coverage.code_for`.
        """
        return compatibility.code_for(card.cc, build, self.capabilities)

    def has_code_for(self, card: Card, build: TorchBuild) -> bool:
        """Tell whether a build has code that a card runs. See `coverage.code_for` for the rule and
        its source.
        """
        return self.code_for(card, build) is not None

    def builds_for_card(
        self, card: Card, torch: str, platform: str = "linux-x86_64"
    ) -> tuple[TorchBuild, ...]:
        """Return the builds of a torch release that have code for a card, oldest CUDA first."""
        release = self.torch_release(torch)
        builds = (
            (self.build(torch, flavour, platform) for flavour in release.builds) if release else ()
        )
        return tuple(
            sorted(
                (row for row in builds if row is not None and self.has_code_for(card, row)),
                key=lambda row: require_version(cuda_of(row.flavour)),
            )
        )

    def has_feature(self, card: Card, name: str) -> bool | None:
        """Tell whether a card has tensor_cores, tf32, bf16, fp8 or fp4 in hardware; None when its
        capability has no row.
        """
        row = self.capabilities.get(card.cc)
        return None if row is None else name in row.features and name not in card.lacks

    def driver_floor(self, cuda: str, *, windows: bool = False) -> str | None:
        """Return the oldest driver that runs programs of a CUDA version; None when that version has
        no row.

        Source: NVIDIA, CUDA Compatibility, minor version compatibility (11.x: 450, 12.x: 525,
        13.x: 580 on Linux).
        """
        row = self.toolkits.get(cuda)
        return None if row is None else row.floor_windows if windows else row.floor_linux

    def last_driver_branch(self, card: Card) -> DriverBranch | None:
        """Return the last driver branch for a card's generation (470 for Kepler, 580 for Maxwell,
        Pascal, Volta); None when none drops it.
        """
        return compatibility.last_driver_branch(card, self.drivers)

    def cudnn_floor(self, cuda: str, version: str) -> CudnnSupport | None:
        """Return the row that holds for a cuDNN release ("9.11.0") for a CUDA major ("12"); None
        for one older than the table, or text that is no version.
        """
        wanted = parse_version(version)
        rows = [
            row
            for row in self.cudnn
            if row.cuda == cuda and wanted is not None and require_version(row.first) <= wanted
        ]
        return max(rows, key=lambda row: require_version(row.first), default=None)

    def newest_cuda(self, driver: str) -> str | None:
        """Return the newest CUDA in the table that a driver ("580.82.07", or a branch: "580")
        brings; newer drivers than the table's bring at least that.
        """
        return compatibility.newest_cuda(driver, self.toolkits.values())

    def incompatibilities(
        self, driver: str, build: TorchBuild | None, card: Card, *, windows: bool = False
    ) -> tuple[compatibility.Incompatibility, ...]:
        """Return all that keeps a build from running on a card with a driver: () when it runs,
        UNKNOWN when the build or the driver is.
        """
        toolkit = None if build is None else self.toolkits.get(cuda_of(build.flavour))
        return compatibility.find_incompatibilities(
            driver, card, build, toolkit, self.drivers, self.capabilities, windows=windows
        )

    def can_run(
        self, driver: str, build: TorchBuild | None, card: Card, *, windows: bool = False
    ) -> bool | None:
        """Tell whether a build runs on a card with a driver; None when the facts cannot tell. See
        `obstacles`.
        """
        found = self.incompatibilities(driver, build, card, windows=windows)
        return (
            None
            if any(one.kind is compatibility.IncompatibilityKind.UNKNOWN for one in found)
            else not found
        )

    def image_driver(self, family: str, day: str) -> ImageDriver | None:
        """Return the driver of a family's image of a day ("20260809"); None where none was
        published.
        """
        known = [
            row
            for row in self.image_drivers
            if row.family == family and row.since.isdigit() and row.since <= day
        ]
        return max(known, key=lambda row: row.since, default=None)

    def glibc(self, place: str) -> str | None:
        """Return the C library of a system ("Ubuntu 22.04"), an image family or a Colab runtime;
        None when it is unknown.
        """
        if place in self.runtimes:
            return self.runtimes[place].glibc
        image = self.images.get(place)
        row = self.systems.get(image.os if image else place)
        return row.glibc if row else None

    def machines_with(self, card: str, count: int = 1) -> tuple[MachineType, ...]:
        """Return the machine types that carry exactly that many cards of a kind, the smallest
        first.
        """
        rows = (row for row in self.machines.values() if row.card == card and row.gpus == count)
        return tuple(sorted(rows, key=lambda row: (row.vcpus, row.ram_gb)))

    def attachment(self, card: str, count: int = 1) -> GpuAttachment | None:
        """Return how large an N1 machine with that many cards attached may be; None when that
        number cannot be attached.
        """
        return next(
            (row for row in self.attachments if row.card == card and row.gpus == count), None
        )

    def release_range(self, package: str, version: str) -> ReleaseRange | None:
        """Return the row that holds for a release of a package, or None; transformers has
        `transformers`.
        """
        wanted = parse_version(version)
        rows = self.runs.get(package, ())
        return next(
            (
                row
                for row in rows
                if wanted is not None
                and require_version(row.first) <= wanted <= require_version(row.last)
            ),
            None,
        )

    def declared_requirement(
        self, package: str, version: str, of: str
    ) -> DeclaredRequirement | None:
        """Return what a release declares about another package; None when it declares nothing, or
        nothing was read.

        A release between two rows is answered where both say the same.
        """
        rows = self._around(package, version)
        said = {row.declared.get(of) for row in rows}
        return (
            DeclaredRequirement(str(rows[0].declared[of]), rows[0].evidence)
            if len(said) == 1 and None not in said
            else None
        )

    def accelerate_floor(self, transformers: str) -> VersionFloor | None:
        """Return the accelerate that Trainer of that transformers release needs: what it asks for,
        or what has the functions that it calls.

        None when it needs none, or is outside the table.
        """
        floor, wanted = self._floor(transformers, "accelerate"), parse_version(transformers)
        if floor is None or wanted is None:
            return floor
        called = [
            row
            for row in self.trainer_calls
            if require_version(row.first) <= wanted
            and require_version(row.accelerate) > require_version(floor.version)
        ]
        newest = max(called, key=lambda row: require_version(row.accelerate), default=None)
        return (
            floor
            if newest is None
            else VersionFloor(newest.accelerate, newest.accelerate, newest.evidence)
        )

    def torch_floor(self, transformers: str) -> VersionFloor | None:
        """Return the torch below which that transformers release switches PyTorch off; None when
        there is none, or it is outside the table.
        """
        return self._floor(transformers, "torch")

    def has_transformers_release(self, version: str) -> bool:
        """Tell whether a release lies within the table, between the oldest and the newest one that
        was read.
        """
        wanted = parse_version(version)
        return wanted is not None and require_version(
            self.transformers[0].first
        ) <= wanted <= require_version(self.transformers[-1].last)

    def flavour_index(self, flavour: str) -> str:
        """Return the address of the PyTorch index for a flavour such as "cu128" or "cpu"."""
        return self.index_pattern.format(flavour=flavour)

    def card(self, name: str) -> Card | None:
        """Return the accelerator of that name or alias, whatever its case, or None."""
        return self._cards_by_name.get(name.casefold())

    def cudas(self) -> tuple[str, ...]:
        """Return the CUDA versions that any torch release was built for, oldest first."""
        flavours = {flavour for row in self.torch for flavour in row.builds}
        return tuple(sorted((cuda_of(flavour) for flavour in flavours), key=require_version))

    def completions(self) -> dict[str, list[str]]:
        """Return the known values of a spec's `gpu`, `python` and `cuda`: offered by editors, never
        the only ones allowed.
        """
        return {
            "gpu": ["none", "mps", *(card.name for card in self.cards)],
            "python": [row.version for row in self.pythons],
            "cuda": ["auto", "none", *self.cudas()],
        }

    def estimate_memory(self, work: reckoning.Workload) -> reckoning.MemoryEstimate:
        """Return the GPU memory that a workload takes, in bytes on each device. See
        `memory.estimate` for the formula and its sources.
        """
        return reckoning.estimate_memory(work, self.optimizers, self.overhead)

    def minimum_memory(self, work: reckoning.Workload) -> int:
        """Return the bytes on each GPU that a workload cannot do without. See `memory.least`."""
        return reckoning.minimum_memory(work, self.optimizers)

    def memory_savings(
        self, work: reckoning.Workload, *, half: str = "bf16"
    ) -> tuple[reckoning.MemorySaving, ...]:
        """Return the single changes of `training` that save GPU memory, the largest first, each
        with bytes saved and what remains.
        """
        return reckoning.find_savings(work, self.optimizers, self.overhead, half=half)

    def combined_savings(
        self, work: reckoning.Workload, room: float, *, half: str = "bf16"
    ) -> tuple[reckoning.MemorySaving, ...]:
        """Return changes that fit a workload into `room` bytes of GPU memory when made together; ()
        when none do.
        """
        return reckoning.combine_savings(work, room, self.optimizers, self.overhead, half=half)

    def checkpoint_bytes(self, work: reckoning.Workload) -> int | None:
        """Return the bytes of one checkpoint on disk; None when the optimizer is unknown."""
        return reckoning.checkpoint_bytes(work, self.optimizers)

    @cached_property
    def _torch_by_release(self) -> dict[str, TorchRelease]:
        return {row.release: row for row in self.torch}

    @cached_property
    def _cards_by_name(self) -> dict[str, Card]:
        return {
            name.casefold(): card
            for card in reversed(self.cards)
            for name in (*card.aliases, card.name)
        }

    def _around(self, package: str, version: str) -> tuple[ReleaseRange, ...]:
        """Return the row that holds for a release, or the two it lies between; () outside the
        table.
        """
        exact, wanted, rows = (
            self.release_range(package, version),
            parse_version(version),
            self.runs.get(package, ()),
        )
        if exact is not None or wanted is None:
            return (exact,) if exact else ()
        below = [row for row in rows if require_version(row.last) < wanted]
        above = [row for row in rows if require_version(row.first) > wanted]
        return (below[-1], above[0]) if below and above else ()

    def _floor(self, transformers: str, of: str) -> VersionFloor | None:
        """Bracket the release between two that were read; floors never fall from one release to the
        next.
        """
        wanted = parse_version(transformers)
        if wanted is None:
            return None
        runs = self.transformers
        upper = bisect_left(runs, wanted, key=lambda run: require_version(run.last))
        lower = bisect_right(runs, wanted, key=lambda run: require_version(run.first)) - 1
        if upper == len(runs) or lower < 0 or (sure := getattr(runs[upper], of)) is None:
            return None
        return VersionFloor(sure, getattr(runs[lower], of), runs[upper].evidence)


@lru_cache(maxsize=4096)
def _release(version: str) -> str:
    """Return the release of torch that a version is, in three parts; "" for a pre-release, a
    post-release, or no version.
    """
    wanted = parse_version(version)
    if wanted is None or wanted.is_prerelease or wanted.is_postrelease or len(wanted.release) > 3:
        return ""
    return ".".join(str(part) for part in (*wanted.release, 0, 0)[:3])


def _identity(table: Any) -> Any:
    return table


def flavour_of(cuda: str) -> str:
    """Return the torch build family of a spec's CUDA version: "cu128" for "12.8", "cpu" for "none"."""  # noqa: E501
    return "cpu" if cuda == "none" else "cu" + cuda.replace(".", "")


def cuda_of(flavour: str) -> str:
    """Return the CUDA version of a build family: "12.8" for "cu128", "none" for "cpu"."""
    return "none" if flavour == "cpu" else f"{flavour[2:-1]}.{flavour[-1]}"
