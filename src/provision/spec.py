"""What a person writes: the whole language of a spec as a typed, closed and strict model."""

import ast
import itertools
import os
import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, GetJsonSchemaHandler, Strict, field_validator, model_validator
from pydantic_core import CoreSchema, PydanticCustomError

# Plugins of pydantic are foreign code, found by reading the metadata of every distribution around: none is loaded while these models are built.
_PLUGINS = os.environ.get("PYDANTIC_DISABLE_PLUGINS")
os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"

API_VERSION: Literal["provision/v1"] = "provision/v1"
_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_SIZE = r"^[0-9]{1,6}(\.[0-9]{1,3})?\s?(B|KB|MB|GB|TB|KiB|MiB|GiB|TiB)$"
_RESERVED = ("PATH", "VIRTUAL_ENV", "PYTHONHOME")
_OF_A_CARD = ("vram", "driver", "compute_capability")
_COUNT = r"^\d+(\.\d+)?[KMBT]$"


def bytes_of(size: str) -> int:
    """Return the number of bytes that a size such as "16GiB" or "500 MB" stands for."""
    number, unit = re.fullmatch(r"([\d.]+)\s?([A-Za-z]+)", size).groups()  # type: ignore[union-attr]
    return int(float(number) * _UNITS[unit])


def seconds_of(duration: str) -> int:
    """Return the number of seconds that a duration such as "90s", "30m" or "8h" stands for."""
    return int(duration[:-1]) * _SECONDS[duration[-1]]


def parameters_of(count: str) -> int:
    """Return the number of parameters that "1.1B" or "459K" stands for."""
    return int(float(count[:-1]) * {"K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}[count[-1]])


def _specifiers(text: str) -> str:
    try:
        SpecifierSet(text)
    except InvalidSpecifier as error:
        raise PydanticCustomError("specifier", "{problem}; write it as in >=580 or ==2.13.*", {"problem": str(error)}) from None
    return text


Size = Annotated[str, Field(pattern=_SIZE, examples=["16GiB"])]
Duration = Annotated[str, Field(pattern=r"^[1-9][0-9]{0,4}[smhd]$", examples=["30m"])]
Specifiers = Annotated[str, AfterValidator(_specifiers)]
Identifier = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
EnvironmentName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
EnvironmentValue = Annotated[str, Field(pattern=r"^[^\x00]*$")]


def _without_default(schema: dict[str, Any]) -> None:
    del schema["default"]


class _Part(BaseModel):
    """Strict and closed: no silent coercion, no unknown keys, and no echo of values (they may be secrets) in errors."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, hide_input_in_errors=True, defer_build=True)


class _Short(_Part):
    """A part that may also be written as one string."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        long = handler.resolve_ref_schema(handler(core_schema))
        return {"anyOf": [{"type": "string"}, long], "description": (cls.__doc__ or "").strip()}


class Platform(StrEnum):
    """An operating system and processor that a local target may have."""

    LINUX_X86_64 = "linux-x86_64"
    LINUX_AARCH64 = "linux-aarch64"
    MACOS_ARM64 = "macos-arm64"
    WINDOWS_X86_64 = "windows-x86_64"


class Gpu(_Short):
    """The accelerator: `L4`, `A100-80GB:2`, `none` for CPU, `mps` for Apple silicon, or {type, count}."""

    type: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._ -]*$")
    """Name of the card, as in L4, A100-80GB or RTX-4090; `none` for CPU; `mps` for Apple silicon."""
    count: int = Field(default=1, ge=0, le=16)
    """How many cards one machine carries."""

    @model_validator(mode="before")
    @classmethod
    def _from_short(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        name, colon, count = value.partition(":")
        if colon and not re.fullmatch(r"[1-9][0-9]?", count):
            raise PydanticCustomError("gpu_count", "after the colon stands the number of cards, as in A100-80GB:2")
        return {"type": name, "count": int(count or 1)}

    def __str__(self) -> str:
        """Return the short form."""
        return self.type if self.none or self.count == 1 else f"{self.type}:{self.count}"

    @property
    def none(self) -> bool:
        """Whether the work runs on CPU."""
        return self.type == "none"


class Package(_Short):
    """A Python package: a requirement such as `transformers[torch]>=5.13`, or {name, version, extras, index, build, source}."""

    name: str = Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$")
    """Name of the distribution."""
    version: Specifiers = ""
    """Version specifiers, as in `>=1,<2`; empty for any."""
    extras: list[Annotated[str, Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$")]] = []
    """Optional features of the distribution to install as well."""
    marker: str = ""
    """Environment marker, as in `sys_platform == "linux"`; empty for everywhere."""
    index: str | None = None
    """Key under `indexes` of the one index that this package comes from."""
    build: bool = False
    """Whether a source distribution may be built when there is no wheel."""
    source: Literal["pypi", "conda"] = "pypi"
    """`conda` lets a conda target take this package from its channels."""

    @model_validator(mode="before")
    @classmethod
    def _from_short(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        try:
            wanted = Requirement(value)
        except InvalidRequirement as error:
            problem = str(error).splitlines()[0]
            raise PydanticCustomError("requirement", "not a requirement: {problem}", {"problem": problem}) from None
        if wanted.url:
            raise PydanticCustomError("requirement_url", "a package is named by version, not by URL; put its index under `indexes` and bind it with `index:`")
        marker = str(wanted.marker) if wanted.marker else ""
        return {"name": wanted.name, "version": str(wanted.specifier), "extras": sorted(wanted.extras), "marker": marker}

    @field_validator("marker")
    @classmethod
    def _marker_parses(cls, value: str) -> str:
        try:
            Requirement(f"x; {value}" if value else "x")
        except InvalidRequirement:
            raise PydanticCustomError("marker", "not an environment marker; write it as in sys_platform == 'linux'") from None
        return value

    @property
    def key(self) -> str:
        """The canonical (PEP 503) name."""
        return canonicalize_name(self.name)

    @property
    def specifiers(self) -> SpecifierSet:
        """The version specifiers, parsed."""
        return SpecifierSet(self.version)

    @property
    def requirement(self) -> str:
        """The package as one PEP 508 line."""
        extras = f"[{','.join(self.extras)}]" if self.extras else ""
        marker = f" ; {self.marker}" if self.marker else ""
        return f"{self.key}{extras}{self.version}{marker}"


class CondaPackage(_Short):
    """A conda package: a match spec such as `ffmpeg` or `cuda-nvcc=12.8`, or {name, version, channel}."""

    name: str = Field(pattern=r"^[a-z0-9_][a-z0-9_.-]*$")
    """Name of the package in its channel."""
    version: str = ""
    """Version as conda writes it, as in `12.8.*` or `>=6`."""
    channel: str = "conda-forge"
    """Channel that it comes from."""

    @model_validator(mode="before")
    @classmethod
    def _from_short(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        parts = re.fullmatch(r"(?:([A-Za-z0-9_./-]+)::)?([a-z0-9_][a-z0-9_.-]*)\s*(?:=*\s*([^\s=<>!]+)|([<>!].+))?", value)
        if parts is None:
            raise PydanticCustomError("match_spec", "not a conda package; write it as in ffmpeg, cuda-nvcc=12.8 or conda-forge::gxx>=12")
        channel, name, exact, bounds = parts.groups()
        return {"name": name, "version": exact or bounds or "", "channel": channel or "conda-forge"}


class Index(_Part):
    """A package index (PEP 503) under a name."""

    url: str = Field(pattern=r"^(https?|file)://\S+$", examples=["https://packages.example.com/simple"])
    """Address of the index. Credentials do not belong here: set UV_INDEX_NAME_USERNAME and UV_INDEX_NAME_PASSWORD."""

    @field_validator("url")
    @classmethod
    def _without_credentials(cls, value: str) -> str:
        if re.search(r"[?#]", value):
            raise PydanticCustomError("url_query", "a query may carry a token, which would land in the lock; write the address without it")
        if re.match(r"^[a-z]+://[^/]*@", value):
            raise PydanticCustomError(
                "url_credentials", "a user name or password in the URL would land in the lock; use UV_INDEX_<NAME>_USERNAME and _PASSWORD"
            )
        return value


class SecretReference(_Part):
    """Where a secret is fetched when it is used: exactly one of secret, env, colab."""

    secret: str | None = Field(default=None, pattern=r"^projects/[^/]+/secrets/[^/]+/versions/([0-9]+|latest)$")
    """Secret Manager version, as in projects/p/secrets/hf/versions/3."""
    env: EnvironmentName | None = None
    """Name of a variable in the caller's environment (local targets)."""
    colab: EnvironmentName | None = None
    """Name in Colab's own secret store."""

    @model_validator(mode="before")
    @classmethod
    def _never_literal(cls, value: Any) -> Any:
        if isinstance(value, str):
            raise PydanticCustomError("secret_literal", "a secret is named here, never written: use {env: NAME}, {secret: projects/...} or {colab: NAME}")
        return value

    @model_validator(mode="after")
    def _exactly_one(self) -> "SecretReference":
        if sum(part is not None for part in (self.secret, self.env, self.colab)) != 1:
            raise PydanticCustomError("secret_kinds", "name exactly one of secret, env, colab")
        return self


class Requires(_Part):
    """What the machine must have; each is checked on the device."""

    ram: Size | None = None
    """Memory that the process may use (the smaller of the machine's and the container's)."""
    disk: Size | None = None
    """Free disk where the environment and the declared paths lie."""
    shm: Size | None = None
    """Size of /dev/shm, which DataLoader workers share batches through."""
    vram: Size | None = None
    """Memory of one GPU."""
    driver: Specifiers | None = None
    """NVIDIA driver version, as in `>=580`."""
    compute_capability: Specifiers | None = None
    """CUDA compute capability, as in `>=8.0`."""


class Precision(StrEnum):
    """The number format that training computes in."""

    FP32 = "fp32"
    TF32 = "tf32"
    FP16 = "fp16"
    BF16 = "bf16"
    FP8 = "fp8"


class Model(_Part):
    """Shape of the model to train: feeds the memory estimate."""

    parameters: str | None = Field(default=None, pattern=_COUNT, examples=["1.1B"])
    """Number of parameters, as in 1.1B or 350M."""
    hidden_size: int | None = Field(default=None, ge=1)
    """Width of the residual stream."""
    layers: int | None = Field(default=None, ge=1)
    """Number of transformer layers."""


class Training(_Part):
    """What will run: feeds the rules, the memory estimate and the verification."""

    framework: Literal["hf-trainer", "torch", "none"] | None = None
    """Default: hf-trainer when transformers is among the packages, else torch when torch is, else none."""
    precision: Annotated[Precision, Strict(False)] = Precision.FP32
    """Number format that training computes in."""
    model: Model | None = None
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
    """How work is spread over several devices."""
    launcher: Literal["auto", "python", "torchrun", "accelerate"] = "auto"
    """Which program starts the training."""
    dataloader_workers: int = Field(default=0, ge=0, le=256)
    """Worker processes of the DataLoader."""
    arguments: dict[str, Any] = {}
    """Further TrainingArguments, checked against the installed transformers."""


class Cost(_Part):
    """A bound on what a machine may cost."""

    limit_per_hour: float | int = Field(gt=0)
    """US dollars per hour."""


class Verify(_Part):
    """How thoroughly the device is checked."""

    tier: Literal["inventory", "quick", "deep", "burn"] = "quick"
    """inventory (under a second), quick, deep (minutes), burn (as long as `timeout`)."""
    timeout: Duration = "30m"
    """After this the verification ends without a verdict."""


class _Target(_Part):
    gpu: Gpu | None = None
    """In place of the spec's `gpu`."""
    cuda: str | None = Field(default=None, pattern=r"^(auto|none|\d+\.\d+)$")
    """In place of the spec's `cuda`."""
    paths: dict[EnvironmentName, str] = {}
    """Merged over the spec's `paths`."""
    requires: Requires | None = None
    """In place of the spec's `requires`, key by key; a target with gpu: none is not asked for what only cards have."""


class LocalTarget(_Target):
    """An environment on this machine."""

    kind: Literal["local"]
    manager: Literal["uv", "conda"] = "uv"
    """Which program makes the environment."""
    kernel: bool = False
    """Register a Jupyter kernel for the environment (ipykernel must be among the packages)."""


class ColabTarget(_Target):
    """A Google Colab runtime."""

    kind: Literal["colab"]
    runtime: str = Field(default="latest", pattern=r"^(latest|\d{4}\.\d{2})$")
    """Version of the runtime, as in 2026.07."""
    via: Literal["browser", "colab-cli"] = "browser"
    """How the cell gets there."""
    isolation: Literal["system", "venv"] = "system"
    """On top of the runtime's packages, or in an environment of its own."""


class ColabEnterpriseTarget(_Target):
    """A Colab Enterprise runtime."""

    kind: Literal["colab-enterprise"]
    project: str
    """Google Cloud project."""
    region: str
    """Region, as in us-central1."""
    machine_type: str = "auto"
    """Machine type, or auto for the cheapest that fits."""
    isolation: Literal["system", "venv"] = "system"
    """On top of the runtime's packages, or in an environment of its own."""


class WorkbenchTarget(_Target):
    """A Vertex AI Workbench instance."""

    kind: Literal["workbench"]
    project: str
    """Google Cloud project."""
    zones: list[str] = Field(min_length=1)
    """Zones in the order in which they are tried."""
    machine_type: str = "auto"
    """Machine type, or auto for the cheapest that fits."""
    image: str | None = None
    """Exact name of the image; a family is resolved at plan and recorded."""
    bucket: str | None = Field(default=None, pattern=r"^gs://[a-z0-9][a-z0-9._-]+(/.*)?$")
    """Where the startup script and the report travel."""
    idle_shutdown: Duration | None = None
    """Stop the instance after this long without use."""
    max_lifetime: Duration | None = None
    """Stop the instance after this long in any case."""
    on_failure: Literal["stop", "keep", "delete"] = "stop"
    """What happens to an instance that could not be verified."""


Target = Annotated[LocalTarget | ColabTarget | ColabEnterpriseTarget | WorkbenchTarget, Field(discriminator="kind")]


class Spec(_Part):
    """One environment: what it holds, what runs in it, and the places it is made at."""

    apiVersion: Literal["provision/v1"] = API_VERSION  # noqa: N815
    """Version of this language."""
    name: Identifier = Field(default="environment", json_schema_extra=_without_default)
    """Name of the environment; default: the file's stem."""
    extends: str | None = None
    """A file below the root, or builtin:NAME. Maps merge, packages merge by name, other lists replace, null removes."""
    gpu: Gpu
    """The accelerator that the work needs; `none` for CPU."""
    cuda: str = Field(default="auto", pattern=r"^(auto|none|\d+\.\d+)$")
    """CUDA version the wheels are built for; auto lets the lock choose; none for CPU."""
    cuda_toolkit: str | None = Field(default=None, pattern=r"^\d+\.\d+$")
    """CUDA toolkit (nvcc) on the device; only where something is built from source."""
    python: str = Field(pattern=r"^3\.\d{1,2}$")
    """Python version, major and minor, in quotes."""
    packages: list[Package]
    """Python packages, by name and version."""
    conda_packages: list[CondaPackage] = []
    """Packages from conda channels; only for manager: conda."""
    indexes: dict[Identifier, Index] = {}
    """Further package indexes by name; a package is bound to its index."""
    exclude_newer: str | None = Field(default=None, pattern=r"^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}:\d{2}Z)?$")
    """Resolve as of that day: later uploads are not seen."""
    platforms: list[Annotated[Platform, Strict(False)]] = Field(default=[Platform.LINUX_X86_64], min_length=1)
    """Platforms of local targets that the lock covers."""
    system_packages: list[Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9+.-]+$")]] = []
    """Packages of the operating system (Debian names)."""
    env: dict[EnvironmentName, EnvironmentValue] = {}
    """Environment variables of what runs there."""
    secrets: dict[EnvironmentName, SecretReference] = {}
    """Environment variables whose values are fetched where they are used."""
    paths: dict[EnvironmentName, str] = {}
    """Absolute folders, checked writable, exported as PROVISION_PATH_<NAME>."""
    requires: Requires = Requires()
    """What the machine must have."""
    training: Training = Training()
    """What will run."""
    cost: Cost | None = None
    """A bound on the hourly price."""
    verify: Verify = Verify()
    """How thoroughly the device is checked."""
    targets: dict[Identifier, Target] = Field(default={"here": LocalTarget(kind="local")}, min_length=1)
    """Places where the environment is made; default: here, a local uv environment."""

    @field_validator("env", "secrets")
    @classmethod
    def _not_ours(cls, value: dict[str, Any]) -> dict[str, Any]:
        taken = [name for name in value if name in _RESERVED or name.startswith("PROVISION_")]
        if taken:
            raise PydanticCustomError("reserved_variable", "{name} is set by the environment itself; remove it", {"name": taken[0]})
        return value

    def package(self, name: str) -> Package | None:
        """Return the package with that name, or None."""
        return next((p for p in self.packages if p.key == canonicalize_name(name)), None)

    def framework(self) -> Literal["hf-trainer", "torch", "none"]:
        """Return what trains: as declared, else by the packages listed."""
        if self.training.framework is not None:
            return self.training.framework
        if self.package("transformers"):
            return "hf-trainer"
        return "torch" if self.package("torch") or self.package("accelerate") else "none"

    def at(self, target: str) -> "Spec":
        """Return the spec as it holds at one target: that target's gpu, cuda, paths and requires over the spec's own.

        A target that puts no card in the place of the spec's leaves out what the spec requires of a card.
        """
        place = self.targets[target]
        cardless = place.gpu is not None and place.gpu.type in ("none", "mps")
        own = self.requires.model_dump(exclude_none=True, exclude=set(_OF_A_CARD) if cardless else None)
        requires = {**own, **(place.requires.model_dump(exclude_none=True) if place.requires else {})}
        changes: dict[str, Any] = {"paths": {**self.paths, **place.paths}, "requires": Requires(**requires), "targets": {target: place}}
        if place.gpu is not None:
            changes["gpu"] = place.gpu
        if place.cuda is not None:
            changes["cuda"] = place.cuda
        return self.model_copy(update=changes)


Spec.model_rebuild()
if _PLUGINS is None:
    del os.environ["PYDANTIC_DISABLE_PLUGINS"]
else:
    os.environ["PYDANTIC_DISABLE_PLUGINS"] = _PLUGINS


def json_schema(completions: dict[str, list[str]]) -> dict[str, Any]:
    """Return the JSON Schema (draft 7) of the language.

    `completions` maps a field of the spec ("python", "cuda", "gpu") to known values: editors offer them, other values stay allowed.
    Draft 7 because YAML language servers read that; there, keywords beside `$ref` are ignored, so such references are wrapped.
    """
    schema = Spec.model_json_schema(ref_template="#/definitions/{model}")
    definitions = schema.pop("$defs")
    _describe({"Spec": schema, **definitions})
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", **schema, "definitions": definitions}
    properties = schema["properties"]
    for field, values in completions.items():
        described = {key: properties[field].pop(key) for key in ("description", "title", "default") if key in properties[field]}
        properties[field] = {**described, "anyOf": [{"type": "string", "enum": values}, dict(properties[field])]}
    wrapped: dict[str, Any] = _wrap_references(schema)
    return wrapped


def _describe(parts: dict[str, Any]) -> None:
    """Give every field the text that stands below it in this file. Reading the file here keeps it out of the start of every command."""
    written = {node.name: node for node in ast.parse(Path(__file__).read_text(encoding="utf-8")).body if isinstance(node, ast.ClassDef)}
    for name, part in parts.items():
        for owner in reversed([kind.__name__ for kind in globals()[name].__mro__ if kind.__name__ in written]):
            for field, below in itertools.pairwise(written[owner].body):
                if (
                    isinstance(field, ast.AnnAssign)
                    and isinstance(field.target, ast.Name)
                    and isinstance(below, ast.Expr)
                    and isinstance(below.value, ast.Constant)
                ):
                    _fields(part)[field.target.id]["description"] = below.value.value


def _fields(part: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = next(form["properties"] for form in (part, *part.get("anyOf", ())) if "properties" in form)
    return found


def _wrap_references(node: Any) -> Any:
    if isinstance(node, list):
        return [_wrap_references(item) for item in node]
    if not isinstance(node, dict):
        return node
    rest = {key: _wrap_references(value) for key, value in node.items() if key not in ("$ref", "discriminator")}
    if "$ref" not in node:
        return rest
    return {**rest, "allOf": [{"$ref": node["$ref"]}]} if rest else {"$ref": node["$ref"]}
