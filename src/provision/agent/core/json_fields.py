"""Strict reading of decoded JSON: a field of the wrong type or form raises an error."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

MakeError = Callable[[str, str], Exception]
"""Makes the error of a program from a message ("FILE: gpu.count must be a number greater than
0") and the reason ("it is 'two'"), which may hold a secret."""


@dataclass(frozen=True, slots=True)
class FieldReader:
    """Reads the fields of one JSON object by dotted route.

    Attributes:
        document: the object.
        source: how messages name the document.
        make_error: makes the exception that is raised for a wrong field.
        optional_keys: a missing key means null; otherwise it is an error.
        prefix: route of this object in the document, with a dot at its end.
    """

    document: dict[str, Any]
    source: str
    make_error: MakeError
    optional_keys: bool = False
    prefix: str = ""

    def value(self, route: str) -> Any:
        """Return whatever is at a route."""
        value: Any = self.document
        for key in route.split("."):
            if isinstance(value, dict) and key in value:
                value = value[key]
            elif self.optional_keys:
                return None
            else:
                raise self.make_error(f"{self.source}: {self.prefix}{route} is missing", "")
        return value

    def error(self, route: str, requirement: str, value: object) -> Exception:
        """Return the error of a value that is not as required."""
        return self.make_error(
            f"{self.source}: {self.prefix}{route} must be {requirement}",
            "it is missing" if value is None else f"it is {value!r:.60}",
        )

    def section(self, route: str) -> FieldReader:
        """Return the reader of an object."""
        return FieldReader(
            self.mapping(route),
            self.source,
            self.make_error,
            self.optional_keys,
            f"{self.prefix}{route}.",
        )

    def optional_section(self, route: str) -> FieldReader | None:
        """Return the reader of an object, None for null."""
        return None if self.value(route) is None else self.section(route)

    def typed(self, route: str, kind: type, requirement: str) -> Any:
        """Return a value of a type; a bool is not an int."""
        value = self.value(route)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.error(route, requirement, value)
        return value

    def mapping(self, route: str) -> dict[str, Any]:
        """Return an object."""
        value: dict[str, Any] = self.typed(route, dict, "an object")
        return value

    def items(self, route: str) -> list[Any]:
        """Return a list; [] for a missing one if keys are optional."""
        if self.optional_keys and self.value(route) is None:
            return []
        values: list[Any] = self.typed(route, list, "a list")
        return values

    def text(self, route: str, form: re.Pattern[str] | None = None, requirement: str = "") -> str:
        """Return a string without line breaks and NUL that matches `form`."""
        return self.check_text(route, self.value(route), form, requirement)

    def optional_text(self, route: str, form: re.Pattern[str] | None = None) -> str | None:
        """Return a string, None for null."""
        return None if self.value(route) is None else self.text(route, form)

    def check_text(
        self,
        route: str,
        value: object,
        form: re.Pattern[str] | None = None,
        requirement: str = "",
    ) -> str:
        """Return a value if it is a string on one line that matches `form`."""
        # A line break would end a line of a file that another program reads; NUL ends an argument.
        if not isinstance(value, str) or any(character in value for character in "\r\n\0"):
            raise self.error(route, requirement or "a string on one line", value)
        if form is not None and not form.fullmatch(value):
            raise self.error(route, requirement or f"a string that matches {form.pattern}", value)
        return value

    def one_of(self, route: str, allowed: tuple[str, ...]) -> str:
        """Return one of these strings."""
        value = self.value(route)
        if not isinstance(value, str) or value not in allowed:
            raise self.error(route, " or ".join(allowed), value)
        return value

    def number(self, route: str) -> float:
        """Return a number that is at least 0."""
        value = self.value(route)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e18:
            raise self.error(route, "a number that is at least 0", value)
        return value

    def optional_size(self, route: str) -> int | None:
        """Return a whole number of at least 0, None for null."""
        return None if self.value(route) is None else int(self.number(route))

    def count(self, route: str, limit: int = 10**7) -> int:
        """Return a whole number between 0 and a limit, both excluded."""
        value: int = self.typed(route, int, "a number greater than 0")
        if not 0 < value < limit:
            raise self.error(route, "a number greater than 0", value)
        return value

    def texts(self, route: str, form: re.Pattern[str] | None = None) -> tuple[str, ...]:
        """Return a list of strings that match `form`."""
        values = self.items(route)
        for value in values:
            if not isinstance(value, str) or not _has_form(value, form):
                suffix = f" that match {form.pattern}" if form else ""
                raise self.error(route, f"a list of strings{suffix}", values)
        return tuple(values)

    def text_map(
        self,
        route: str,
        keys: re.Pattern[str] | None = None,
        values: re.Pattern[str] | None = None,
    ) -> dict[str, str]:
        """Return an object of strings whose names and values match; {} for null."""
        if self.optional_keys and self.value(route) is None:
            return {}
        texts = self.mapping(route)
        for key, value in texts.items():
            if not _has_form(key, keys):
                raise self.error(f"{route}.{key}", "a valid name", key)
            if not isinstance(value, str) or "\0" in value:
                raise self.error(f"{route}.{key}", "a string", value)
            if values is not None and not values.fullmatch(value):
                raise self.error(f"{route}.{key}", f"a string that matches {values.pattern}", value)
        return dict(texts)


def _has_form(text: str, form: re.Pattern[str] | None) -> bool:
    return form is None or form.fullmatch(text) is not None
