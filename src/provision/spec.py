"""The language of a spec as a typed, closed and strict model."""

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
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
    CondaPackage,
    Duration,
    EnvironmentName,
    EnvironmentValue,
    Identifier,
    Index,
    Package,
    StrictModel,
    canonical_name,
    parse_duration,
    parse_parameter_count,
    parse_size,
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
    VertexJobTarget,
    WorkbenchTarget,
)
from provision.kinds.settings import (
    TENSORFLOW_NAMES,
    Backend,
    Code,
    Framework,
    Precision,
    SecretReference,
    Training,
    TrainingModel,
    merge_secrets,
    merge_training,
    merge_variables,
    refuse_reserved_variables,
)

__all__ = [
    "API_VERSION",
    "Code",
    "ColabEnterpriseTarget",
    "ColabTarget",
    "CondaPackage",
    "Cost",
    "Expect",
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
    "VertexJobTarget",
    "WorkbenchTarget",
    "canonical_name",
    "parse_duration",
    "parse_parameter_count",
    "parse_size",
]
API_VERSION: Literal["provision/v1"] = "provision/v1"
DEFAULT_TARGET, EARLIER_DEFAULT_TARGET = "local", "here"
"""The target of a spec without `targets`, and its name in earlier versions."""
CARD_REQUIREMENTS = ("vram", "driver", "compute_capability")
"""Keys of `requires` that only a card can meet."""


def _without_default(schema: dict[str, Any]) -> None:
    del schema["default"]


class Platform(StrEnum):
    """An operating system and processor that a local target may have."""

    LINUX_X86_64 = "linux-x86_64"
    LINUX_AARCH64 = "linux-aarch64"
    MACOS_ARM64 = "macos-arm64"
    MACOS_X86_64 = "macos-x86_64"
    WINDOWS_X86_64 = "windows-x86_64"


class Cost(StrictModel):
    """Limits on what a target costs."""

    limit_per_hour: Annotated[float | int, Field(gt=0)] | None = None
    """Limit in US dollars per hour."""
    limit_per_run: Annotated[float | int, Field(gt=0)] | None = None
    """Limit in US dollars for a job that lasts for the whole `max_duration` (vertex-job)."""

    @model_validator(mode="after")
    def _has_a_limit(self) -> "Cost":
        if self.limit_per_hour is None and self.limit_per_run is None:
            raise PydanticCustomError(
                "cost_limit", "`cost` needs `limit_per_hour` or `limit_per_run`; set one of them"
            )
        return self


def _check_regular_expression(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise PydanticCustomError(
            "regular_expression",
            "is not a Python regular expression: {problem}",
            {"problem": str(error)},
        ) from None
    return text


class Expect(StrictModel):
    """What the command of the verification has to leave behind."""

    exit: int = Field(default=0, ge=0, le=255)
    """Exit code of the command."""
    files: list[Annotated[str, Field(min_length=1)]] = []
    """Files it writes: absolute, or relative to its folder; $NAME stands for a variable."""
    stdout: Annotated[str, AfterValidator(_check_regular_expression)] | None = None
    """Regular expression that must match somewhere in the command's output."""


Tier = Literal["inventory", "quick", "deep", "burn"]
TIERS: tuple[str, ...] = get_args(Tier)
"""The tiers of a verification, from the shortest to the longest."""


class Verify(StrictModel):
    """Depth of the verification, and a command of the project that belongs to it."""

    tier: Tier = "quick"
    """inventory (under a second), quick, deep (minutes), burn (as long as `timeout`)."""
    timeout: Duration = "30m"
    """Time limit for the verification; if it is exceeded, there is no verdict."""
    command: list[EnvironmentValue] = []
    """Program and arguments that run in the environment, in the folder of `code`, with variables,
    paths and secrets.
    """
    expect: Expect = Expect.model_construct()
    """What the command must leave behind."""

    @model_validator(mode="after")
    def _command_has_an_effect(self) -> "Verify":
        if self.command and self.tier == "inventory":
            raise PydanticCustomError(
                "verify_command", "`tier: inventory` does not run a command; use `tier: quick`"
            )
        expects = bool(self.expect.exit or self.expect.files or self.expect.stdout)
        if expects and not self.command:
            raise PydanticCustomError("verify_command", "`expect` needs a `command`; set it too")
        return self


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
    return kind.model.model_validate(value)


if TYPE_CHECKING:
    Target = TargetModel
else:
    Target = Annotated[Any, PlainValidator(_validate_target)]


class Spec(StrictModel):
    """One environment: its content, what runs in it, and the targets it is made at."""

    apiVersion: Literal["provision/v1"] = API_VERSION  # noqa: N815
    """Version of the spec language."""
    name: Identifier = Field(default="environment", json_schema_extra=_without_default)
    """Name of the environment; default: the file's stem."""
    extends: str | None = None
    """A file below the root, or builtin:NAME. Maps merge, packages merge by name, other lists
    replace, null removes.
    """
    gpu: Gpu
    """The GPU; `none` for CPU."""
    cuda: str = Field(default="auto", pattern=r"^(auto|none|\d+\.\d+)$")
    """CUDA version of the wheels; `auto` lets `provision lock` choose, `none` is for CPU."""
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
    """Ignore files that were uploaded to the indexes after this day."""
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
    """Absolute paths of folders that must be writable, or drive:/FOLDER for a folder of Google
    Drive (Colab targets); exported as PROVISION_PATH_<NAME>.
    """
    requires: MachineRequirements = MachineRequirements.model_construct()
    """Requirements for the machine."""
    code: Code | None = None
    """The files that run in the environment."""
    training: Training = Training.model_construct()
    """The training run."""
    cost: Cost | None = None
    """Limit for the hourly price."""
    verify: Verify = Verify.model_construct()
    """Depth of the verification."""
    targets: dict[Identifier, Target] = Field(
        default={DEFAULT_TARGET: LocalTarget.model_construct(kind="local")}, min_length=1
    )
    """Targets of the environment; default: `local`, a uv environment on this machine."""
    # A default would be copied for each spec.
    _registry: Registry = PrivateAttr(default_factory=lambda: REGISTRY)

    def model_post_init(self, context: Registry | None) -> None:
        """Keep the registry that the spec was validated with."""
        self._registry = context or REGISTRY

    @property
    def registry(self) -> Registry:
        """The kinds that its targets may be of."""
        return self._registry

    @property
    def loads_old_protobuf(self) -> bool:
        """True if `env` lets protobuf 4 and later load generated code for protobuf 3, slower."""
        return self.env.get("PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION") == "python"

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
        return refuse_reserved_variables(value)

    def package(self, name: str) -> Package | None:
        """Return the package with that name, or None."""
        key = canonical_name(name)
        for package in self.packages:  # twice as fast as `next` of a generator
            if package.key == key:
                return package
        return None

    def framework(self) -> Framework:
        """Return the declared framework, else the one that the listed packages imply."""
        if self.training.framework is not None:
            return self.training.framework
        if self.package("transformers"):
            return "hf-trainer"
        if self.package("torch") or self.package("accelerate"):
            return "torch"
        if self.package("keras") or self._backend_package("tensorflow"):
            return "keras"
        return "jax" if self.package("jax") else "none"

    def backend(self) -> Backend:
        """Return what Keras computes with: as declared, as in KERAS_BACKEND, else as listed."""
        named = self.training.backend or self.env.get("KERAS_BACKEND")
        backends: tuple[Backend, ...] = get_args(Backend)
        for backend in backends:
            if backend == named:
                return backend
        return next((name for name in backends if self._backend_package(name)), "tensorflow")

    def packages_that_test_a_gpu(self) -> frozenset[str]:
        """Return the packages, each of which is enough to show that a GPU computes."""
        match self.framework(), self.backend():
            case "jax", _:
                return frozenset({"torch", "jax"})
            case "keras", "tensorflow":
                return frozenset({"torch", *TENSORFLOW_NAMES})
            case "keras", backend:
                return frozenset({"torch", backend})
        return frozenset({"torch"})

    def _backend_package(self, backend: str) -> Package | None:
        names = TENSORFLOW_NAMES if backend == "tensorflow" else (backend,)
        return next(filter(None, map(self.package, names)), None)

    def with_settings_of(self, target: str) -> "Spec":
        """Return the spec with the `env`, `secrets` and `training` that hold at one target."""
        own = self.targets[target]
        if not own.changes_settings:
            return self
        training = self.training
        if own.training is not None:
            training = merge_training(training, own.training)
        changes = {
            "env": merge_variables(self.env, own.env),
            "secrets": merge_secrets(self.secrets, own.secrets),
            "training": training,
        }
        return self.model_copy(update=changes)

    def for_target(self, target: str) -> "Spec":
        """Return the spec for one target, whose own fields take precedence.

        A target that replaces the spec's card by none leaves out what is required of a card.
        """
        own = self.targets[target]
        changes: dict[str, Any] = {
            "paths": {**self.paths, **own.paths},
            "targets": {target: own},
        }
        has_no_card = own.gpu is not None and own.gpu.type in ("none", "mps")
        if has_no_card or own.requires is not None:
            requires = self.requires.model_dump(exclude_none=True)
            if has_no_card:
                for field in CARD_REQUIREMENTS:
                    requires.pop(field, None)
            if own.requires is not None:
                requires |= own.requires.model_dump(exclude_none=True)
            changes["requires"] = MachineRequirements(**requires)
        for field in ("gpu", "cuda"):
            value = getattr(own, field)
            if value is not None:
                changes[field] = value
        settled = self.with_settings_of(target)
        if settled.framework() == "keras":
            # Keras looks for its backend there, and takes TensorFlow without it.
            changes["env"] = {"KERAS_BACKEND": settled.backend(), **settled.env}
        elif (
            changes.get("gpu", self.gpu).is_none
            and settled.training.strategy in ("ddp", "fsdp")
            and (settled.framework() == "hf-trainer" or self.package("accelerate"))
        ):
            # Without it, processes that torchrun starts on a CPU train alone: accelerate 1.15.0,
            # _prepare_backend in state.py; transformers 5.24.0, _setup_devices in training_args.py.
            changes["env"] = {"ACCELERATE_USE_CPU": "true", **settled.env}
        return settled.model_copy(update=changes)


Spec.model_rebuild()
MachineRequirements.model_rebuild()  # built on its own in Spec.for_target
