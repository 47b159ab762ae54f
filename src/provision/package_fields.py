"""The packages and package indexes of a spec."""

import re
from functools import lru_cache
from typing import Annotated, Any, Literal

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from pydantic import Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from provision.field_types import IndexUrl, ShorthandModel, Specifiers, StrictModel


@lru_cache(maxsize=4096)
def canonical_name(name: str) -> str:
    """Return the canonical (PEP 503) name of a package."""
    return canonicalize_name(name)


class Package(ShorthandModel):
    """A package: `transformers[torch]>=5.13` or {name, version, extras, index, build, source}."""

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
    """Whether a source distribution may be built when the newest release has no wheel that fits."""
    source: Literal["pypi", "conda"] = "pypi"
    """`conda` lets a conda target take this package from its channels."""

    @model_validator(mode="before")
    @classmethod
    def _from_short(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        try:
            requirement = Requirement(value)
        except InvalidRequirement as error:
            problem = str(error).splitlines()[0]
            raise PydanticCustomError(
                "requirement", "not a requirement: {problem}", {"problem": problem}
            ) from None
        if requirement.url:
            raise PydanticCustomError(
                "requirement_url",
                "a package is named by version, not by URL; put its index under `indexes` "
                "and bind it with `index:`",
            )
        return {
            "name": requirement.name,
            "version": str(requirement.specifier),
            "extras": sorted(requirement.extras),
            "marker": str(requirement.marker or ""),
        }

    @field_validator("marker")
    @classmethod
    def _marker_parses(cls, value: str) -> str:
        try:
            Requirement(f"x; {value}" if value else "x")
        except InvalidRequirement:
            raise PydanticCustomError(
                "marker", "not an environment marker; write it as in sys_platform == 'linux'"
            ) from None
        return value

    @property
    def key(self) -> str:
        """The canonical (PEP 503) name."""
        return canonical_name(self.name)

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
    """Version as conda writes it, as in `12.8.*` or `>=6`."""
    channel: str = "conda-forge"
    """Channel that it comes from."""

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
                "not a conda package; write it as in ffmpeg, cuda-nvcc=12.8 or "
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
                "nodefaults is no channel; name the one that has the package: others are "
                "never asked, defaults among them",
            )
        return value


class Index(StrictModel):
    """A package index (PEP 503) under a name."""

    url: IndexUrl
    """Address of the index. Credentials do not belong here: set UV_INDEX_NAME_USERNAME and
    UV_INDEX_NAME_PASSWORD.
    """
