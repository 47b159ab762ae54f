"""Errors of pydantic, each with the route of the value that it is about."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from provision.diagnostics import Route, RouteLocation, RoutePart
from provision.sanitize import redact
from provision.source.document import Source
from provision.source.schema_lookup import target_models
from provision.source.vocabulary import FORMAT_DESCRIPTIONS, format_route
from provision.spec import Spec

STRING_TYPE = "string_type"
"""What pydantic calls a value that should be a text."""
MAX_SHOWN_LENGTH = 60
"""Code points of a value that a message repeats at most."""


@dataclass(frozen=True, slots=True)
class LocatedError:
    """One error of pydantic: `route` is what exists of its place, `rest` what does not (a missing
    key, a member of a union), `value` the data there.
    """

    source: Source
    data: dict[str, Any]
    type: str
    route: Route
    at: RoutePart
    rest: tuple[str | int, ...]
    value: Any
    message: str
    context: Mapping[str, Any]

    @property
    def where(self) -> RouteLocation:
        """The place of the value, or of its key."""
        return RouteLocation(self.route, self.at)

    @property
    def name(self) -> str:
        """The route in words."""
        return format_route(self.route)

    @property
    def is_private(self) -> bool:
        """Whether the value must not be repeated: it may be a secret."""
        return self.route[:1] in (("env",), ("secrets",)) or (
            isinstance(self.value, str) and redact(self.value) != self.value
        )

    @property
    def quoted_value(self) -> str:
        """The value as its author wrote it, " `3.10`", or nothing where it must not be repeated or
        is no scalar.
        """
        text = self.source.text(self.route)
        if text is None or self.is_private or not text:
            return ""
        return f" `{text if len(text) <= MAX_SHOWN_LENGTH else text[:MAX_SHOWN_LENGTH] + '…'}`"


def locate_errors(
    source: Source, data: dict[str, Any], error: ValidationError
) -> list[LocatedError]:
    """Return the errors of pydantic, located."""
    return [
        _locate_error(source, data, detail)
        for detail in error.errors(include_url=False, include_input=False)
    ]


def find_unquoted_scalars(problems: list[LocatedError]) -> dict[Route, str]:
    """Return the routes of plain scalars that should be text: with "" where quotes make them right,
    else with an example of what would be.

    All of them are put in quotes at once, and the spec is asked again.
    """
    texts = {
        problem.route: problem.source.text(problem.route)
        for problem in problems
        if problem.type == STRING_TYPE and problem.source.is_plain(problem.route)
    }
    routes = {route: text for route, text in texts.items() if text}
    if not routes:
        return {}
    source, data = problems[0].source, copy.deepcopy(problems[0].data)
    for route, text in routes.items():
        holder: Any = data
        for part in route[:-1]:
            holder = holder[part]
        holder[route[-1]] = text
    examples = dict.fromkeys(routes, "")
    try:
        Spec.model_validate(data)
    except ValidationError as error:
        for problem in locate_errors(source, data, error):
            if problem.route in examples:
                examples[problem.route] = FORMAT_DESCRIPTIONS.get(
                    str(problem.context.get("pattern")), ("", '"text"')
                )[1]
    return examples


def _locate_error(source: Source, data: dict[str, Any], detail: ErrorDetails) -> LocatedError:
    """Return an error of pydantic with the route of the value that it is about.

    Behind ("targets", NAME) pydantic names the kind of the target; names of union members, and
    of fields that a short form stands for, come last.
    """
    loc = detail["loc"]
    if loc[:1] == ("targets",) and len(loc) > 2 and loc[2] in _TARGET_KINDS:
        loc = (*loc[:2], *loc[3:])
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
        detail["type"],
        tuple(route),
        at,
        rest,
        value,
        detail["msg"],
        detail.get("ctx", {}),
    )


_TARGET_KINDS = frozenset(target_models())
