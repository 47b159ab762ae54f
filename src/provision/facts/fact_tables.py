"""Fact tables: each is declared here once, by its name and the type of its rows."""

from __future__ import annotations

from functools import cached_property

from provision.facts import schema_packages, schema_platforms, schema_torch, schema_variables
from provision.facts.compiled_tables import CompiledTables, Table, grouped, keyed, names, rows


class FactTables:
    """All tables that the program loads.

    Releases are in ascending order, and package names are canonical (PEP 503).
    """

    compiled: CompiledTables

    # torch, CUDA and cards
    torch = rows("torch", schema_torch.TorchRelease)
    torch_family = names("torch.family")
    torch_hosts = names("torch.hosts")
    flavoured = names("torch.flavoured")
    """Packages with one build per CUDA flavour, which their version names (+cu128)."""
    index_pattern = Table(lambda compiled: str(compiled.value("torch.index")))
    compile_pythons = keyed("torch.compile", schema_torch.TorchCompilePython)
    """By Python; torch.compile works with every torch on a Python without a row."""
    builds = keyed("builds", schema_torch.TorchBuild.from_columns)
    """By "release:flavour:platform", such as "2.11.0:cu128:linux-x86_64"."""
    toolkits = keyed("cuda.toolkits", schema_torch.CudaToolkit.from_columns)
    drivers = rows("cuda.drivers", schema_torch.DriverBranch)
    capabilities = keyed("cuda.capabilities", schema_torch.ComputeCapability)
    cudnn = rows("cuda.cudnn", schema_torch.CudnnSupport)
    cards = rows("gpus", schema_torch.Card)
    mps = keyed("mps", schema_torch.MpsPrecision)
    """By precision; Apple silicon does not have a precision without a row."""
    pythons = rows("pythons", schema_torch.PythonVersion)

    # machines, images and Colab
    machines = keyed("machines", schema_platforms.MachineType)
    attachments = rows("machines.attach", schema_platforms.GpuAttachment)
    images = keyed("images", schema_platforms.ImageFamily)
    image_drivers = rows("images.drivers", schema_platforms.ImageDriver)
    image_changes = rows("images.changes", schema_platforms.ImageChange)
    systems = keyed("images.systems", schema_platforms.OperatingSystem)
    metadata_keys = rows("workbench.metadata", schema_platforms.MetadataKey)
    reserved_labels = keyed("workbench.labels", schema_platforms.ReservedLabel)
    disks = keyed("workbench.disks", schema_platforms.DiskType)
    limits = keyed("workbench.limits", schema_platforms.WorkbenchLimit)
    """Limits of Workbench instances: "boot disk", "data disk", "largest disk", "shortest idle",
    "longest idle", "shm share".
    """
    runtimes = keyed("colab.runtimes", schema_platforms.ColabRuntime)
    shapes = rows("colab.shapes", schema_platforms.ColabShape)
    conditions = keyed("colab.conditions", schema_platforms.ColabProperty)
    """Properties of every Colab machine: "host driver", "runtime lifetime" (months), "free GPU",
    "enterprise Pythons", "shm" (GiB), "nvcc", "gcc", "pip".
    """
    protected = keyed("colab.protected", schema_platforms.ProtectedPackage)

    # packages
    runs = grouped("packages.runs", schema_packages.ReleaseRange)
    wheel_pythons = grouped("wheel_pythons", schema_packages.WheelPythons)
    cuda_wheels = grouped("extensions.cuda_wheels", schema_packages.CudaWheels)
    flash_attention = rows("extensions.flash_attn", schema_packages.FlashAttentionWheels)
    bitsandbytes = rows("extensions.bitsandbytes", schema_packages.BitsandbytesBinaries)
    capability_floors = rows("extensions.capability_floors", schema_packages.CapabilityFloor)
    cuda_only = rows("extensions.cuda_only", schema_packages.CudaOnlyUse)
    source_only = keyed("extensions.sdist_only", schema_packages.SourceOnlyPackage)
    numpy_floors = keyed("extensions.numpy2", schema_packages.NumpyFloor)
    undeclared = rows("undeclared", schema_packages.UndeclaredRequirement)
    platforms = keyed("extensions.platforms", schema_packages.PlatformWheels)
    one_of = rows("extensions.one_of", schema_packages.ExclusivePackages)
    bringers = keyed("extensions.brings", schema_packages.KnownDependencies)
    """By "package" or "package[extra]"."""
    popular = names("names.popular")
    seen = names("names.seen")
    replaced = keyed("names.replaced", schema_packages.ReplacedPackage)
    wheels = Table(
        lambda compiled: {
            str(row["file"]): str(row["sha256"]) for row in compiled.value("wheels.rows")
        }
    )
    """File name to sha256, each confirmed by a source other than the file's own index."""

    # training
    transformers = rows("transformers", schema_packages.TransformersReleases)
    trainer_calls = rows("transformers.trainer_calls", schema_packages.TrainerCall)
    precision_checks = rows("transformers.precision_checks", schema_packages.PrecisionCheck)
    accelerate_extras = names("transformers.brings_accelerate.extras")
    uses_transformers = keyed("extensions.uses_transformers", schema_packages.TransformersUse)
    strategy_floors = rows("extensions.strategies", schema_packages.StrategyFloor)
    trackers = keyed("extensions.trackers", schema_packages.Tracker)
    arguments = keyed("training_arguments", schema_packages.TrainingArgument)
    """Arguments that a release of TrainingArguments takes or took."""
    subclass_arguments = keyed("extensions.subclass", schema_packages.SubclassArgument)
    optimizer_names = keyed("training_arguments.optimizers", schema_packages.OptimizerName)
    arguments_read = Table(
        lambda compiled: tuple(map(str, compiled.value("training_arguments.read")))
    )
    """The transformers releases whose TrainingArguments were read, oldest first."""
    optimizers = keyed("memory.optimizers", schema_packages.OptimizerState)
    overhead = keyed("memory.overhead", schema_packages.MemoryOverhead)
    variables = grouped("variables", schema_variables.VariableEffect)
    folders = keyed("variables.folders", schema_variables.FolderVariable)
    allocator_options = keyed("variables.allocator", schema_variables.AllocatorOption)

    @cached_property
    def transformers_read(self) -> tuple[str, ...]:
        """The first and the last release of each range of transformers releases, oldest first."""
        ends = (end for row in self.transformers for end in (row.first, row.last))
        return tuple(dict.fromkeys(ends))

    @cached_property
    def accelerate_packages(self) -> frozenset[str]:
        """The packages that depend on accelerate without an extra."""
        return frozenset(
            name
            for name, row in self.bringers.items()
            if "accelerate" in row.brings and "[" not in name
        )
