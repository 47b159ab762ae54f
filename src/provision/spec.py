"""The language of a spec as a typed, closed and strict model."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    Field,
    PlainValidator,
    PrivateAttr,
    Strict,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError, PydanticKnownError

from provision.field_types import (
    COUNT_PATTERN,
    CondaPackage,
    Duration,
    EnvironmentName,
    EnvironmentValue,
    Identifier,
    Index,
    Package,
    Size,
    StrictModel,
    canonical_name,
    parse_duration,
    parse_parameter_count,
    parse_size,
    without_pydantic_plugins,
)
from provision.kinds import (
    REGISTRY,
    ColabEnterpriseTarget,
    ColabTarget,
    Gpu,
    LocalTarget,
    MachineRequirements,
    Registry,
    TargetModel,
    WorkbenchTarget,
)
from provision.kinds.base import SecretSource

__all__ = [
    "API_VERSION",
    "ColabEnterpriseTarget",
    "ColabTarget",
    "CondaPackage",
    "Cost",
    "Gpu",
    "Index",
    "LocalTarget",
    "MachineRequirements",
    "Package",
    "Platform",
    "Precision",
    "SecretReference",
    "Spec",
    "Training",
    "TrainingModel",
    "Verify",
    "WorkbenchTarget",
    "canonical_name",
    "parse_duration",
    "parse_parameter_count",
    "parse_size",
]
API_VERSION: Literal["provision/v1"] = "provision/v1"
DEFAULT_TARGET, EARLIER_DEFAULT_TARGET = "local", "here"
"""The target of a spec without `targets`, and its name in earlier versions."""
_RESERVED_VARIABLES = ("PATH", "VIRTUAL_ENV", "PYTHONHOME")
CARD_REQUIREMENTS = ("vram", "driver", "compute_capability")
"""Keys of `requires` that only a card can meet."""


def _without_default(schema: dict[str, Any]) -> None:
    del schema["default"]


class Platform(StrEnum):
    """An operating system and processor that a local target may have."""

    LINUX_X86_64 = "linux-x86_64"
    LINUX_AARCH64 = "linux-aarch64"
    MACOS_ARM64 = "macos-arm64"
    WINDOWS_X86_64 = "windows-x86_64"


class SecretReference(StrictModel):
    """Source of a secret, which is fetched when it is used: exactly one of secret, env, colab."""

    secret: str | None = Field(
        default=None, pattern=r"^projects/[^/]+/secrets/[^/]+/versions/([0-9]+|latest)$"
    )
    """Secret Manager version, as in projects/p/secrets/hf/versions/3."""
    env: EnvironmentName | None = None
    """Name of a variable in the caller's environment (local targets)."""
    colab: EnvironmentName | None = None
    """Name in Colab's own secret store."""

    @model_validator(mode="before")
    @classmethod
    def _never_literal(cls, value: Any) -> Any:
        if isinstance(value, str):
            raise PydanticCustomError(
                "secret_literal",
                "a spec names secrets and never contains them: use {env: NAME}, {secret: "
                "projects/...} or {colab: NAME}",
            )
        return value

    @model_validator(mode="after")
    def _exactly_one(self) -> "SecretReference":
        if sum(part is not None for part in (self.secret, self.env, self.colab)) != 1:
            raise PydanticCustomError("secret_kinds", "name exactly one of secret, env, colab")
        return self

    @property
    def source(self) -> SecretSource:
        """The service that the secret is fetched from."""
        if self.secret is not None:
            return "secret"
        return "env" if self.env is not None else "colab"


class Precision(StrEnum):
    """The number format that training computes in."""

    FP32 = "fp32"
    TF32 = "tf32"
    FP16 = "fp16"
    BF16 = "bf16"
    FP8 = "fp8"


class TrainingModel(StrictModel):
    """Shape of the model to train, for the memory estimate."""

    parameters: str | None = Field(default=None, pattern=COUNT_PATTERN, examples=["1.1B"])
    """Number of parameters, as in 1.1B or 350M."""
    hidden_size: int | None = Field(default=None, ge=1)
    """Width of the residual stream."""
    layers: int | None = Field(default=None, ge=1)
    """Number of transformer layers."""


class TrainingData(StrictModel):
    """The data of a training, as far as it takes memory."""

    in_memory: Size | None = None
    """RAM that the data takes in each process, if it is loaded as a whole."""


class Training(StrictModel):
    """The training run, for the rules, the memory estimate and the verification."""

    framework: Literal["hf-trainer", "torch", "none"] | None = None
    """Default: hf-trainer when transformers is among the packages, else torch when torch is, else
    none.
    """
    precision: Annotated[Precision, Strict(False)] = Precision.FP32
    """Number format that training computes in."""
    model: TrainingModel | None = None
    """Shape of the model."""
    method: Literal["full", "lora", "qlora", "inference"] = "full"
    """Which parameters are trained."""
    batch_size: int | None = Field(default=None, ge=1)
    """Samples per device and step."""
    sequence_length: int | None = Field(default=None, ge=1)
    """Tokens per sample."""
    optimizer: str = Field(default="adamw_torch", pattern=r"^[a-z0-9_]+$")
    """Name as in TrainingArguments(optim=...)."""
    gradient_checkpointing: bool = False
    """Recompute activations in the backward pass."""
    torch_compile: bool = False
    """Compile the model with torch.compile."""
    strategy: Literal["none", "ddp", "fsdp", "deepspeed-zero2", "deepspeed-zero3"] = "none"
    """Distribution of the work over several devices."""
    launcher: Literal["auto", "python", "torchrun", "accelerate"] = "auto"
    """Program that starts the training."""
    dataloader_workers: int = Field(default=0, ge=0, le=256)
    """Worker processes of the DataLoader."""
    data: TrainingData | None = None
    """The data, for the memory estimate."""
    arguments: dict[str, Any] = {}
    """Further TrainingArguments, checked against the installed transformers."""


class Cost(StrictModel):
    """A limit on the cost of a machine."""

    limit_per_hour: float | int = Field(gt=0)
    """US dollars per hour."""


class Verify(StrictModel):
    """Depth of the verification."""

    tier: Literal["inventory", "quick", "deep", "burn"] = "quick"
    """inventory (under a second), quick, deep (minutes), burn (as long as `timeout`)."""
    timeout: Duration = "30m"
    """Time limit of the verification; after it, there is no verdict."""


def _validate_target(value: Any, info: ValidationInfo) -> TargetModel:
    """Return a target, validated by the model of its kind in the registry of the spec."""
    registry: Registry = info.context or REGISTRY
    if not isinstance(value, dict):
        raise PydanticKnownError("model_attributes_type")
    if "kind" not in value:
        raise PydanticKnownError("union_tag_not_found", {"discriminator": "'kind'"})
    kind = registry.find(value["kind"])
    if kind is None:
        expected = ", ".join(f"'{kind.name}'" for kind in registry.kinds)
        raise PydanticKnownError(
            "union_tag_invalid",
            {"discriminator": "'kind'", "tag": str(value["kind"]), "expected_tags": expected},
        )
    with without_pydantic_plugins():  # the model is built on first use
        return kind.model.model_validate(value)


if TYPE_CHECKING:
    Target = TargetModel
else:
    Target = Annotated[Any, PlainValidator(_validate_target)]


class Spec(StrictModel):
    """One environment: its content, what runs in it, and the targets it is made at."""

    apiVersion: Literal["provision/v1"] = API_VERSION  # noqa: N815
    """Version of this language."""
    name: Identifier = Field(default="environment", json_schema_extra=_without_default)
    """Name of the environment; default: the file's stem."""
    extends: str | None = None
    """A file below the root, or builtin:NAME. Maps merge, packages merge by name, other lists
    replace, null removes.
    """
    gpu: Gpu
    """The GPU; `none` for CPU."""
    cuda: str = Field(default="auto", pattern=r"^(auto|none|\d+\.\d+)$")
    """CUDA version of the wheels; `auto` lets the lock choose, `none` is for CPU."""
    cuda_toolkit: str | None = Field(default=None, pattern=r"^\d+\.\d+$")
    """CUDA toolkit (nvcc) on the device; only needed to build packages from source."""
    python: str = Field(pattern=r"^3\.\d{1,2}$")
    """Python version, major and minor, in quotes."""
    packages: list[Package]
    """Python packages, by name and version."""
    conda_packages: list[CondaPackage] = []
    """Packages from conda channels, for targets with manager: conda."""
    indexes: dict[Identifier, Index] = {}
    """Other package indexes by name; each package comes from one index."""
    exclude_newer: str | None = Field(
        default=None, pattern=r"^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}:\d{2}Z)?$"
    )
    """Ignore files that were uploaded after this day."""
    platforms: list[Annotated[Platform, Strict(False)]] = Field(
        default=[Platform.LINUX_X86_64], min_length=1
    )
    """Platforms of local targets that the lock covers."""
    system_packages: list[Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9+.-]+$")]] = []
    """Packages of the operating system (Debian names)."""
    env: dict[EnvironmentName, EnvironmentValue] = {}
    """Environment variables for programs in the environment."""
    secrets: dict[EnvironmentName, SecretReference] = {}
    """Environment variables whose values are fetched on the device."""
    paths: dict[EnvironmentName, str] = {}
    """Absolute paths of folders that must be writable; exported as PROVISION_PATH_<NAME>."""
    requires: MachineRequirements = MachineRequirements.model_construct()
    """Requirements for the machine."""
    training: Training = Training.model_construct()
    """The training run."""
    cost: Cost | None = None
    """A limit on the hourly price."""
    verify: Verify = Verify.model_construct()
    """Depth of the verification."""
    targets: dict[Identifier, Target] = Field(
        default={DEFAULT_TARGET: LocalTarget.model_construct(kind="local")}, min_length=1
    )
    """Targets of the environment; default: `local`, a uv environment on this machine."""
    _registry: Registry = PrivateAttr(default=REGISTRY)

    def model_post_init(self, context: Registry | None) -> None:
        """Keep the registry that the spec was validated with."""
        self._registry = context or REGISTRY

    @property
    def registry(self) -> Registry:
        """The kinds that its targets may be of."""
        return self._registry

    @property
    def has_default_target(self) -> bool:
        """True if the spec declares no targets."""
        return "targets" not in self.model_fields_set

    def rename_default_target(self, name: str) -> "Spec":
        """Return a spec without `targets` whose default target has another name."""
        renamed = self.model_copy(update={"targets": dict.fromkeys([name], *self.targets.values())})
        renamed.model_fields_set.discard("targets")
        return renamed

    @field_validator("env", "secrets")
    @classmethod
    def _is_not_reserved(cls, value: dict[str, Any]) -> dict[str, Any]:
        for name in value:
            if name in _RESERVED_VARIABLES or name.startswith("PROVISION_"):
                raise PydanticCustomError(
                    "reserved_variable",
                    "{name} is set by the environment itself; remove it",
                    {"name": name},
                )
        return value

    def package(self, name: str) -> Package | None:
        """Return the package with that name, or None."""
        key = canonical_name(name)
        return next((package for package in self.packages if package.key == key), None)

    def framework(self) -> Literal["hf-trainer", "torch", "none"]:
        """Return the declared framework, else the one that the listed packages imply."""
        if self.training.framework is not None:
            return self.training.framework
        if self.package("transformers"):
            return "hf-trainer"
        return "torch" if self.package("torch") or self.package("accelerate") else "none"

    def for_target(self, target: str) -> "Spec":
        """Return the spec for one target, whose own fields take precedence.

        A target that replaces the spec's card by none leaves out what is required of a card.
        """
        own = self.targets[target]
        requires = self.requires.model_dump(exclude_none=True)
        if own.gpu is not None and own.gpu.type in ("none", "mps"):
            for field in CARD_REQUIREMENTS:
                requires.pop(field, None)
        if own.requires is not None:
            requires |= own.requires.model_dump(exclude_none=True)
        changes: dict[str, Any] = {
            "paths": {**self.paths, **own.paths},
            "requires": MachineRequirements(**requires),
            "targets": {target: own},
        }
        for field in ("gpu", "cuda"):
            value = getattr(own, field)
            if value is not None:
                changes[field] = value
        return self.model_copy(update=changes)


with without_pydantic_plugins():
    Spec.model_rebuild()
    MachineRequirements.model_rebuild()  # built on its own in Spec.for_target
