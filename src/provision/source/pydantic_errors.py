"""Locates pydantic's errors in the spec: each gets the route of its value."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from provision.diagnostics import Route, RouteLocation, RoutePart, field_of
from provision.kinds import Registry
from provision.sanitize import redact
from provision.source.document import Source
from provision.source.vocabulary import FORMAT_DESCRIPTIONS, format_route
from provision.spec import Spec

STRING_TYPE = "string_type"
"""Pydantic's type of the error for a value that must be a string."""
MAX_SHOWN_LENGTH = 60
"""Maximum code points of a value in a message."""


@dataclass(frozen=True, slots=True)
class LocatedError:
    """An error of pydantic.

    `route` is the existing part of its location, `rest` the part that does not exist (a missing
    key, a member of a union), and `value` the data at `route`.
    """

    source: Source
    data: dict[str, Any]
    registry: Registry
    type: str
    route: Route
    at: RoutePart
    rest: tuple[str | int, ...]
    value: Any
    message: str
    context: Mapping[str, Any]

    @property
    def where(self) -> RouteLocation:
        """The location of the value, or of its key."""
        return RouteLocation(self.route, self.at)

    @property
    def name(self) -> str:
        """The route as text."""
        return format_route(self.route)

    @property
    def is_private(self) -> bool:
        """True if messages must not repeat the value: it may be a secret."""
        return field_of(self.route) in ("env", "secrets") or (
            isinstance(self.value, str) and redact(self.value) != self.value
        )

    @property
    def quoted_value(self) -> str:
        """The value as written, " `3.10`", or "" if it is private or not a scalar."""
        text = self.source.text(self.route)
        if text is None or self.is_private or not text:
            return ""
        if len(text) > MAX_SHOWN_LENGTH:
            text = text[:MAX_SHOWN_LENGTH] + "…"
        return f" `{text}`"


def locate_errors(
    source: Source, data: dict[str, Any], error: ValidationError, registry: Registry
) -> list[LocatedError]:
    """Return the errors of a pydantic exception with their routes."""
    return [
        _locate_error(source, data, detail, registry)
        for detail in error.errors(include_url=False, include_input=False)
    ]


def find_unquoted_scalars(problems: list[LocatedError]) -> dict[Route, str]:
    """Return the plain scalars that must be text, by route.

    The value is "" if quotes make the scalar valid, else an example of a valid value. The spec is
    validated once with all of them in quotes.
    """
    texts = {
        problem.route: problem.source.text(problem.route)
        for problem in problems
        if problem.type == STRING_TYPE and problem.source.is_plain(problem.route)
    }
    routes = {route: text for route, text in texts.items() if text}
    if not routes:
        return {}
    source, registry = problems[0].source, problems[0].registry
    data = copy.deepcopy(problems[0].data)
    for route, text in routes.items():
        parent: Any = data
        for part in route[:-1]:
            parent = parent[part]
        parent[route[-1]] = text
    examples = dict.fromkeys(routes, "")
    try:
        Spec.model_validate(data, context=registry)
    except ValidationError as error:
        for problem in locate_errors(source, data, error, registry):
            if problem.route in examples:
                pattern = str(problem.context.get("pattern"))
                _, examples[problem.route] = FORMAT_DESCRIPTIONS.get(pattern, ("", '"text"'))
    return examples


def _locate_error(
    source: Source, data: dict[str, Any], detail: ErrorDetails, registry: Registry
) -> LocatedError:
    """Return an error of pydantic with the route of its value.

    Names of union members, and of fields that a short form stands for, come last.
    """
    loc = detail["loc"]
    value: Any = data
    route: list[str | int] = []
    for part in loc:
        inside = (isinstance(value, dict) and part in value) or (
            isinstance(value, list) and isinstance(part, int) and part < len(value)
        )
        if not inside:
            break
        value = value[part]
        route.append(part)
    rest = loc[len(route) :]
    at = RoutePart.KEY if rest[:1] == ("[key]",) else RoutePart.VALUE
    return LocatedError(
        source,
        data,
        registry,
        detail["type"],
        tuple(route),
        at,
        rest,
        value,
        detail["msg"],
        detail.get("ctx", {}),
    )
