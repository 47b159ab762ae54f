"""Requirements, secrets and training, which a target may set for itself, and how they merge."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

from pydantic import AfterValidator, Field, GetJsonSchemaHandler, Strict, model_validator
from pydantic_core import CoreSchema, PydanticCustomError

from provision.field_types import (
    COUNT_PATTERN,
    MODEL_ID_PATTERN,
    SECRETS_ARE_NAMED,
    EnvironmentName,
    EnvironmentValue,
    ShorthandModel,
    Size,
    Specifiers,
    StrictModel,
)
from provision.package_origins import (
    check_git_url,
    check_revision,
    check_subdirectory,
    find_git_contradiction,
    format_git_source,
    refuse_revision_keys,
)

Framework = Literal["hf-trainer", "torch", "keras", "jax", "none"]
Backend = Literal["tensorflow", "jax", "torch"]
TENSORFLOW_NAMES = ("tensorflow", "tensorflow-cpu")
SecretSource = Literal["secret", "env", "colab"]

_RESERVED_VARIABLES = ("PATH", "VIRTUAL_ENV", "PYTHONHOME")
_Values = TypeVar("_Values", bound=dict[str, Any])


class Code(ShorthandModel):
    """The files that run in the environment: `.`, {path, exclude}, or {git, rev}."""

    path: str = Field(default=".", pattern=r"^[^/~\\\x00][^\\\x00]*$", examples=["src"])
    """A folder in the project, relative to the spec: the files that git tracks in it, or without
    git all but hidden ones and those that tools make.
    """
    exclude: list[Annotated[str, Field(min_length=1)]] = []
    """Patterns of paths, or of names of files and folders, that are left out."""
    git: Annotated[str, AfterValidator(check_git_url)] | None = None
    """Repository (https or ssh) with the code, in place of `path`; git reads it with your
    credentials.
    """
    rev: Annotated[str, AfterValidator(check_revision)] | None = None
    """Branch, tag or commit of `git`; the lock records the commit. Default: the default branch."""
    subdirectory: Annotated[str, AfterValidator(check_subdirectory)] | None = None
    """Folder of the code in the `git` repository."""
    clone: bool = True
    """Let a Colab notebook clone the code if anybody can read its commit; `false` puts the code
    into the notebook.
    """

    @model_validator(mode="before")
    @classmethod
    def _from_short(cls, value: Any) -> Any:
        if isinstance(value, dict):
            refuse_revision_keys(value)
        if not isinstance(value, str):
            return value
        if "://" in value or value.startswith(("git+", "git@")):
            raise PydanticCustomError(
                "code_source", "write a repository as {git: URL, rev: REVISION}"
            )
        return {"path": value}

    @model_validator(mode="after")
    def _one_source(self) -> "Code":
        path = self.path if "path" in self.model_fields_set else None
        if problem := find_git_contradiction({**vars(self), "path": path}):
            raise PydanticCustomError("code_source", problem)
        return self

    @property
    def source(self) -> str:
        """The repository and revision as text; "" for a folder."""
        return format_git_source(self.git, self.rev)


class SecretReference(StrictModel):
    """Sources of a secret, which is fetched when it is used: at least one of secret, env, colab.

    Each target takes the source that its kind can read.
    """

    secret: str | None = Field(
        default=None, pattern=r"^projects/[^/]+/secrets/[^/]+/versions/([0-9]+|latest)$"
    )
    """Secret Manager version, such as projects/p/secrets/hf/versions/3 (Workbench targets)."""
    env: EnvironmentName | None = None
    """Name of a variable in the caller's environment (local targets)."""
    colab: EnvironmentName | None = None
    """Name in Colab's own secret store (Colab targets)."""

    @model_validator(mode="before")
    @classmethod
    def _never_literal(cls, value: Any) -> Any:
        if isinstance(value, str):
            raise PydanticCustomError("secret_literal", SECRETS_ARE_NAMED)
        return value

    @model_validator(mode="after")
    def _has_a_source(self) -> "SecretReference":
        if not self.sources:
            raise PydanticCustomError("secret_kinds", "set at least one of secret, env, colab")
        return self

    @property
    def sources(self) -> frozenset[SecretSource]:
        """The services that the secret can be fetched from."""
        named: dict[SecretSource, str | None] = {
            "secret": self.secret,
            "env": self.env,
            "colab": self.colab,
        }
        return frozenset(source for source, name in named.items() if name is not None)


class MachineRequirements(StrictModel):
    """Requirements for the machine; each is checked on the device."""

    ram: Size | None = None
    """Memory that the process can use (the smaller of the machine's and the container's)."""
    disk: Size | None = None
    """Free disk space for the environment and the declared paths."""
    shm: Size | None = None
    """Size of /dev/shm, through which DataLoader workers share batches."""
    vram: Size | None = None
    """Memory of one GPU."""
    driver: Specifiers | None = None
    """NVIDIA driver version, such as `>=580`."""
    compute_capability: Specifiers | None = None
    """CUDA compute capability, such as `>=8.0`."""


class Precision(StrEnum):
    """The number format that training computes in."""

    FP32 = "fp32"
    TF32 = "tf32"
    FP16 = "fp16"
    BF16 = "bf16"
    FP8 = "fp8"


class TrainingModel(StrictModel):
    """Shape of the model to train, for the memory estimate."""

    id: str | None = Field(
        default=None, pattern=MODEL_ID_PATTERN, examples=["meta-llama/Llama-3.1-8B"]
    )
    """Name of a well-known model on the Hugging Face Hub, or a folder with the model's config.json,
    relative to the spec, such as ./model. Its sizes are used for the fields below that are not set.
    """
    parameters: str | None = Field(default=None, pattern=COUNT_PATTERN, examples=["1.1B"])
    """Number of parameters, such as 1.1B or 350M."""
    hidden_size: int | None = Field(default=None, ge=1)
    """Width of the residual stream."""
    layers: int | None = Field(default=None, ge=1)
    """Number of transformer layers."""


class TrainingData(StrictModel):
    """The data of a training, as far as it takes memory."""

    in_memory: Size | None = None
    """RAM that the data takes in each process if all of it is loaded into memory."""


class Training(StrictModel):
    """The training run, for the rules, the memory estimate and the verification."""

    framework: Framework | None = None
    """Default: the first of hf-trainer (transformers is among the packages), torch, keras (or
    tensorflow) and jax whose package is listed, else none.
    """
    backend: Backend | None = None
    """Keras backend; default: KERAS_BACKEND under `env`, otherwise the first of tensorflow, jax
    and torch that is listed.
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
    """Optimizer name, as in TrainingArguments(optim=...)."""
    gradient_checkpointing: bool = False
    """Recompute activations in the backward pass."""
    torch_compile: bool = False
    """Compile the model with torch.compile."""
    strategy: Literal["none", "ddp", "fsdp", "deepspeed-zero2", "deepspeed-zero3"] = "none"
    """How the work is distributed across several devices. With `gpu: none`, `ddp` and `fsdp` set
    ACCELERATE_USE_CPU for programs that use Trainer or accelerate.
    """
    launcher: Literal["auto", "python", "torchrun", "accelerate"] = "auto"
    """Program that starts the training."""
    dataloader_workers: int = Field(default=0, ge=0, le=256)
    """Worker processes of the DataLoader."""
    data: TrainingData | None = None
    """The data, for the memory estimate."""
    arguments: dict[str, Any] = {}
    """Additional TrainingArguments, checked against the installed transformers."""


class TargetTraining(Training):
    """Fields that a target changes in the spec's `training`; null restores a default."""

    @model_validator(mode="before")
    @classmethod
    def _restore_defaults(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        fields = Training.model_fields
        return {
            name: fields[name].default if item is None and name in fields else item
            for name, item in value.items()
        }

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Return the schema of `training` with null for each field, and without its defaults."""
        schema = handler(core_schema)
        properties = handler.resolve_ref_schema(schema)["properties"]
        for name, form in properties.items():
            form.pop("default", None)
            if {"type": "null"} not in form.get("anyOf", ()):
                properties[name] = {"anyOf": [form, {"type": "null"}]}
        return schema


def refuse_reserved_variables(values: _Values) -> _Values:
    """Return variables that a spec may set; raise an error of pydantic for one it may not."""
    for name in values:
        if name in _RESERVED_VARIABLES or name.startswith("PROVISION_"):
            raise PydanticCustomError(
                "reserved_variable",
                "{name} is set by the environment itself; remove it",
                {"name": name},
            )
    return values


TargetVariables = Annotated[
    dict[EnvironmentName, EnvironmentValue | None], AfterValidator(refuse_reserved_variables)
]
TargetSecrets = Annotated[
    dict[EnvironmentName, SecretReference | None], AfterValidator(refuse_reserved_variables)
]


def merge_variables(base: Mapping[str, str], own: Mapping[str, str | None]) -> dict[str, str]:
    """Return variables with those of a target; None removes one."""
    merged = {**base, **own}
    return {name: value for name, value in merged.items() if value is not None}


def merge_secrets(
    base: Mapping[str, SecretReference], own: Mapping[str, SecretReference | None]
) -> dict[str, SecretReference]:
    """Return secrets with those of a target, source by source; None removes one."""
    merged = dict(base)
    for name, reference in own.items():
        if reference is None:
            merged.pop(name, None)
        elif name in merged:
            merged[name] = merged[name].model_copy(update=_written_fields(reference))
        else:
            merged[name] = reference
    return merged


def merge_training(base: Training, own: Training) -> Training:
    """Return a training with the fields that a target sets; the maps in it merge too."""
    fields = _written_fields(own)
    for name in ("model", "data"):
        part, below = fields.get(name), getattr(base, name)
        if part is not None and below is not None:
            fields[name] = below.model_copy(update=_written_fields(part))
    if "arguments" in fields:
        arguments = {**base.arguments, **fields["arguments"]}
        fields["arguments"] = {
            name: value for name, value in arguments.items() if value is not None
        }
    return base.model_copy(update=fields)


def _written_fields(model: StrictModel) -> dict[str, Any]:
    return {name: getattr(model, name) for name in model.model_fields_set}


class StarterField(NamedTuple):
    """The value of a field in a first spec, and a comment for the person who edits it."""

    value: Any
    comment: str = ""


class LargerMachine(NamedTuple):
    """A machine with enough RAM: the field of the target to set, its value, and the RAM in GiB."""

    field: str
    value: str
    ram_gib: float
