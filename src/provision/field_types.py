"""Field types of a spec: sizes, durations, names, packages and indexes, and the strict model."""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Annotated, Any, Literal, Self

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    field_validator,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError

from provision.package_origins import (
    check_git_url,
    check_path,
    check_revision,
    check_subdirectory,
    find_contradiction,
    format_git_source,
    parse_unnamed,
    parse_url,
    refuse_other_keys,
)

_BYTES_PER_UNIT = {
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}
_SECONDS_PER_UNIT = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_SIZE_PATTERN = r"^[0-9]{1,6}(\.[0-9]{1,3})?\s?(B|KB|MB|GB|TB|KiB|MiB|GiB|TiB)$"
COUNT_PATTERN = r"^\d+(\.\d+)?[KMBT]$"
MODEL_ID_PATTERN = (
    r"^(\.\.?(/[A-Za-z0-9._-]+)+/?|[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?)$"
)
"""OWNER/NAME on the Hugging Face Hub, or a folder, such as ./NAME."""
SECRETS_ARE_NAMED = (
    "a spec refers to secrets and never contains them: use {env: NAME}, {secret: projects/...} "
    "or {colab: NAME}"
)


def parse_size(size: str) -> int:
    """Return the number of bytes that a size such as "16GiB" or "500 MB" stands for."""
    number, unit = re.fullmatch(r"([\d.]+)\s?([A-Za-z]+)", size).groups()  # type: ignore[union-attr]
    return int(float(number) * _BYTES_PER_UNIT[unit])


def parse_duration(duration: str) -> int:
    """Return the number of seconds that a duration such as "90s", "30m" or "8h" stands for."""
    return int(duration[:-1]) * _SECONDS_PER_UNIT[duration[-1]]


def parse_parameter_count(count: str) -> int:
    """Return the number of parameters that "1.1B" or "459K" stands for."""
    return int(float(count[:-1]) * {"K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}[count[-1]])


def _check_specifiers(text: str) -> str:
    try:
        SpecifierSet(text)
    except InvalidSpecifier as error:
        raise PydanticCustomError(
            "specifier", "{problem}; use a form such as >=580 or ==2.13.*", {"problem": str(error)}
        ) from None
    return text


Size = Annotated[str, Field(pattern=_SIZE_PATTERN, examples=["16GiB"])]
Duration = Annotated[str, Field(pattern=r"^[1-9][0-9]{0,4}[smhd]$", examples=["30m"])]
Specifiers = Annotated[str, AfterValidator(_check_specifiers)]
PackageName = Annotated[str, Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$")]
Identifier = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
EnvironmentName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
EnvironmentValue = Annotated[str, Field(pattern=r"^[^\x00]*$")]


def _refuse_credentials(address: str) -> str:
    if re.search(r"[?#]", address):
        raise PydanticCustomError(
            "url_query",
            "a query may contain a token, which would end up in the lock; remove it from the URL",
        )
    if re.match(r"^[a-z]+://[^/]*@", address):
        raise PydanticCustomError(
            "url_credentials",
            "a user name or password in the URL would end up in the lock; set "
            "UV_INDEX_<NAME>_USERNAME and UV_INDEX_<NAME>_PASSWORD",
        )
    return address


IndexUrl = Annotated[
    str,
    Field(pattern=r"^(https?|file)://\S+$", examples=["https://packages.example.com/simple"]),
    AfterValidator(_refuse_credentials),
]


@contextmanager
def without_pydantic_plugins() -> Iterator[None]:
    """Build models without pydantic plugins.

    They are foreign code, and pydantic reads the metadata of every distribution to find them.
    """
    before = os.environ.get("PYDANTIC_DISABLE_PLUGINS")
    os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYDANTIC_DISABLE_PLUGINS"]
        else:
            os.environ["PYDANTIC_DISABLE_PLUGINS"] = before


class StrictModel(BaseModel):
    """Strict and closed: no coercion, no unknown keys.

    Errors do not repeat values, which may be secrets.
    """

    model_config = ConfigDict(
        strict=True, extra="forbid", frozen=True, hide_input_in_errors=True, defer_build=True
    )

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """Return the same values, which never change: pydantic copies each default of a spec."""
        return self

    @classmethod
    def model_rebuild(
        cls,
        *,
        force: bool = False,
        raise_errors: bool = True,
        _parent_namespace_depth: int = 2,
        _types_namespace: Mapping[str, Any] | None = None,
    ) -> bool | None:
        """Build the model without plugins, also when pydantic does it at the first use."""
        with without_pydantic_plugins():
            return super().model_rebuild(
                force=force,
                raise_errors=raise_errors,
                _parent_namespace_depth=_parent_namespace_depth + 1,
                _types_namespace=_types_namespace,
            )


class ShorthandModel(StrictModel):
    """A part that may also be written as one string."""

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        long = handler.resolve_ref_schema(handler(core_schema))
        return {
            "anyOf": [{"type": "string"}, long],
            "description": " ".join((cls.__doc__ or "").split()),
        }


@lru_cache(maxsize=4096)
def _parse_requirement(text: str) -> Requirement:
    """Return a requirement, which callers do not change: specs share most of their lines."""
    return Requirement(text)


@lru_cache(maxsize=4096)
def canonical_name(name: str) -> str:
    """Return the canonical (PEP 503) name of a package."""
    return canonicalize_name(name)


_SINGLE_EQUALS = re.compile(r"^\s*([A-Za-z0-9][\w.-]*(?:\[[^\]]*\])?)\s*=\s*(\d[\w.*+!-]*)\s*$")
_BLANK_FOR_OPERATOR = re.compile(r"^\s*([A-Za-z0-9][\w.-]*)\s+v?(\d[\w.*+!-]*)\s*$")
_OPEN_BRACKET = re.compile(r"^\s*[A-Za-z0-9][\w.-]*\[[^\]]*$")
_REVERSED_OPERATOR = re.compile(r"^\s*([A-Za-z0-9][\w.-]*)\s*=([<>])\s*(\d[\w.*+!-]*)\s*$")
_MISSING_COMMA = re.compile(r"[<>=!~]=?\s*[\w.]+\s*[<>=!~]")


def suggest_requirement(text: str) -> str:
    """Return how to correct a text that is not a requirement."""
    if match := _SINGLE_EQUALS.match(text) or _BLANK_FOR_OPERATOR.match(text):
        return f"write {match[1]}=={match[2]}"
    if match := _REVERSED_OPERATOR.match(text):
        return f"write {match[1]}{match[2]}={match[3]}"
    if _OPEN_BRACKET.match(text):
        return "close the bracket, as in transformers[torch]"
    if _MISSING_COMMA.search(text):
        return "separate the conditions with a comma, as in torch>=2.10,<2.12"
    return "write NAME==VERSION, as in torch==2.11.0"


class Package(ShorthandModel):
    """A package: `transformers[torch]>=5.13`, `./x-1.0-py3-none-any.whl`, {name, git, rev} ..."""

    name: PackageName
    """Name of the distribution."""
    version: Specifiers = ""
    """Version specifiers, such as `>=1,<2`; empty for any version."""
    extras: list[PackageName] = []
    """Optional features of the distribution to install as well."""
    marker: str = ""
    """Environment marker, such as `sys_platform == "linux"`; empty for everywhere."""
    index: str | None = None
    """The only index that this package may come from, by its key under `indexes`."""
    build: bool | list[PackageName] = False
    """Allow building from source if the newest release has no matching wheel: `true` for this
    package and the packages it is known to bring, or the names of packages that it brings.
    """
    source: Literal["pypi", "conda"] = "pypi"
    """`conda` lets a conda target install this package from its channels."""
    path: Annotated[str, AfterValidator(check_path)] | None = None
    """Folder with a pyproject.toml, or wheel file; relative to the spec, inside the project."""
    editable: bool = False
    """Install the folder at `path` so that edits take effect immediately; only on local targets.
    """
    git: Annotated[str, AfterValidator(check_git_url)] | None = None
    """Repository (https or ssh) that the package is built from; git reads it with your
    credentials.
    """
    rev: Annotated[str, AfterValidator(check_revision)] | None = None
    """Branch, tag or commit of `git`; the lock records the commit. Default: the default branch."""
    subdirectory: Annotated[str, AfterValidator(check_subdirectory)] | None = None
    """Folder of the package in the `git` repository."""

    @model_validator(mode="before")
    @classmethod
    def _from_short(cls, value: Any) -> Any:
        if isinstance(value, dict):
            refuse_other_keys(value)
        if not isinstance(value, str):
            return value
        try:
            requirement = _parse_requirement(value)
        except InvalidRequirement:
            if (fields := parse_unnamed(value)) is not None:
                return fields
            raise PydanticCustomError(
                "requirement", "is not a requirement", {"hint": suggest_requirement(value)}
            ) from None
        return {
            **(parse_url(requirement.url) if requirement.url else {}),
            "name": requirement.name,
            "version": str(requirement.specifier),
            "extras": sorted(requirement.extras),
            "marker": str(requirement.marker or ""),
        }

    @field_validator("marker")
    @classmethod
    def _marker_parses(cls, value: str) -> str:
        try:
            _parse_requirement(f"x; {value}" if value else "x")
        except InvalidRequirement:
            raise PydanticCustomError(
                "marker", "not an environment marker; use a form such as sys_platform == 'linux'"
            ) from None
        return value

    @model_validator(mode="after")
    def _one_origin(self) -> "Package":
        if problem := find_contradiction(vars(self)):
            raise PydanticCustomError("package_source", problem)
        return self

    @property
    def key(self) -> str:
        """The canonical (PEP 503) name."""
        return canonical_name(self.name)

    @property
    def is_from_index(self) -> bool:
        """True unless it comes from a path or a repository."""
        return self.git is None and self.path is None

    @property
    def origin(self) -> str:
        """The path or repository that it comes from, as text; "" for an index."""
        if self.path is not None:
            return f"{self.path} (editable)" if self.editable else self.path
        folder = f"#subdirectory={self.subdirectory}" if self.subdirectory else ""
        return format_git_source(self.git, self.rev) + folder

    @property
    def is_built(self) -> bool:
        """True if the package itself may be built from source."""
        return self.build is True or (bool(self.build) and self.key in self.built_names)

    @property
    def built_names(self) -> tuple[str, ...]:
        """The canonical names in `build`."""
        return () if isinstance(self.build, bool) else tuple(map(canonical_name, self.build))

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


class CondaPackage(ShorthandModel):
    """A conda package: `ffmpeg`, `cuda-nvcc=12.8` or {name, version, channel}."""

    name: str = Field(pattern=r"^[a-z0-9_][a-z0-9_.-]*$")
    """Name of the package in its channel."""
    version: str = ""
    """Version in conda's syntax, such as `12.8.*` or `>=6`."""
    channel: str = "conda-forge"
    """Channel that the package comes from."""

    @model_validator(mode="before")
    @classmethod
    def _from_short(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        parts = re.fullmatch(
            r"(?:([A-Za-z0-9_./-]+)::)?([a-z0-9_][a-z0-9_.-]*)\s*(?:=*\s*([^\s=<>!]+)|([<>!].+))?",
            value,
        )
        if parts is None:
            raise PydanticCustomError(
                "match_spec",
                "not a conda package; use a form such as ffmpeg, cuda-nvcc=12.8 or "
                "conda-forge::gxx>=12",
            )
        channel, name, exact, bounds = parts.groups()
        return {"name": name, "version": exact or bounds or "", "channel": channel or "conda-forge"}

    @field_validator("channel")
    @classmethod
    def _is_channel(cls, value: str) -> str:
        if value == "nodefaults":  # some versions of conda ask for it as for any channel
            raise PydanticCustomError(
                "channel",
                "nodefaults is not a channel; name the package's channel: other channels, such "
                "as defaults, are never used",
            )
        return value


class Index(StrictModel):
    """A package index (PEP 503) under a name."""

    url: IndexUrl
    """URL of the index, without credentials: set UV_INDEX_NAME_USERNAME and
    UV_INDEX_NAME_PASSWORD.
    """
