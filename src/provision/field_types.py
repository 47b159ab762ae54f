"""Field types of a spec (sizes, durations, names) and the strict model under all its parts."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, GetJsonSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError

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
            "specifier", "{problem}; write it as in >=580 or ==2.13.*", {"problem": str(error)}
        ) from None
    return text


Size = Annotated[str, Field(pattern=_SIZE_PATTERN, examples=["16GiB"])]
Duration = Annotated[str, Field(pattern=r"^[1-9][0-9]{0,4}[smhd]$", examples=["30m"])]
Specifiers = Annotated[str, AfterValidator(_check_specifiers)]
Identifier = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
EnvironmentName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
EnvironmentValue = Annotated[str, Field(pattern=r"^[^\x00]*$")]


def _refuse_credentials(address: str) -> str:
    if re.search(r"[?#]", address):
        raise PydanticCustomError(
            "url_query",
            "a query may carry a token, which would land in the lock; write the address without it",
        )
    if re.match(r"^[a-z]+://[^/]*@", address):
        raise PydanticCustomError(
            "url_credentials",
            "a user name or password in the URL would land in the lock; use "
            "UV_INDEX_<NAME>_USERNAME and _PASSWORD",
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
    """Strict and closed: no silent coercion, no unknown keys.

    Errors do not repeat values, which may be secrets.
    """

    model_config = ConfigDict(
        strict=True, extra="forbid", frozen=True, hide_input_in_errors=True, defer_build=True
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
