"""Typed values taken out of a decoded JSON document; what is missing or of another type is said by
its place.
"""

from __future__ import annotations

from typing import Any

from ..core.versions import normalize_name
from .model import ProbeError


class FieldReader:
    """Takes typed values out of a decoded document by dotted route; raises ProbeError naming the
    file and the route.
    """

    def __init__(self, document: object, where: str) -> None:
        if not isinstance(document, dict):
            raise ProbeError(f"{where}: the file has to hold one JSON object")
        self.document = document
        self.where = where

    def typed_value(self, route: str, kind: type, what: str) -> Any:
        """The value at a route, of this type; `what` names the type in the message."""
        value = self._at(route)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise ProbeError(f"{self.where}: {route} has to be {what}, it is {value!r:.60}")
        return value

    def text(self, route: str) -> str:
        """A text."""
        return str(self.typed_value(route, str, "a text"))

    def optional_text(self, route: str) -> str | None:
        """A text, or None where null stands."""
        return None if self._at(route) is None else self.text(route)

    def number(self, route: str) -> float:
        """A number of at least 0."""
        value = self._at(route)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e18:
            raise ProbeError(
                f"{self.where}: {route} has to be a number of at least 0, it is {value!r:.60}"
            )
        return value

    def optional_size(self, route: str) -> int | None:
        """A whole number of at least 0, or None where null stands."""
        return None if self._at(route) is None else int(self.number(route))

    def one_of(self, route: str, allowed: tuple[str, ...]) -> str:
        """One of these texts."""
        value = self.text(route)
        if value not in allowed:
            raise ProbeError(f"{self.where}: {route} is {value!r}, known are {', '.join(allowed)}")
        return value

    def text_map(self, route: str) -> dict[str, str]:
        """An object of texts."""
        block = self.typed_value(route, dict, "an object of texts")
        for key, value in block.items():
            if not isinstance(value, str):
                raise ProbeError(
                    f"{self.where}: {route}.{key} has to be a text, it is {value!r:.60}"
                )
        return dict(block)

    def text_list(self, route: str, optional: bool = False) -> tuple[str, ...]:
        """A list of texts; () where it is optional and missing."""
        if optional and route not in self.document:
            return ()
        block = self.typed_value(route, list, "a list of texts")
        if not all(isinstance(value, str) for value in block):
            raise ProbeError(f"{self.where}: {route} has to be a list of texts")
        return tuple(block)

    def packages(self) -> dict[str, str]:
        """Locked packages, normal name to version."""
        locked: dict[str, str] = {}
        for place, entry in enumerate(self.typed_value("packages", list, "a list")):
            if (
                not isinstance(entry, dict)
                or not isinstance(entry.get("name"), str)
                or not isinstance(entry.get("version"), str)
            ):
                raise ProbeError(
                    f'{self.where}: packages[{place}] has to be {{"name": text, "version": text}}'
                )
            locked[normalize_name(entry["name"])] = entry["version"]
        return locked

    def _at(self, route: str) -> Any:
        value: Any = self.document
        for part in route.split("."):
            if not isinstance(value, dict) or part not in value:
                raise ProbeError(f"{self.where}: {route} is missing")
            value = value[part]
        return value
