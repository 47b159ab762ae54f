"""Validates the data of a spec."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from provision.diagnostics import Diagnostic, RouteLocation
from provision.source.document import Source
from provision.source.findings import make_finding

if TYPE_CHECKING:
    from provision.spec import Spec


def validate_source(source: Source) -> tuple[Spec | None, tuple[Diagnostic, ...]]:
    """Return the spec and (), or None and the findings about its shape.

    The result is (None, ()) for a document without data, whose text is broken: its findings are in
    `source.diagnostics`, which callers check in any case.
    """
    if source.data is None:
        return None, ()
    # Callers that only read the text do not load the model.
    from pydantic import ValidationError

    from provision.kinds import registry_in_use
    from provision.spec import Spec

    registry = registry_in_use.get()
    data = {"name": default_spec_name(source), **source.data}
    try:
        return Spec.model_validate(data, context=registry), ()
    except RecursionError:
        # packaging parses markers recursively, with a level for each parenthesis.
        finding = make_finding(
            "bad-format",
            "the marker of a package is nested too deeply",
            RouteLocation(("packages",)),
            hint="write it without parentheses",
        )
        return None, (finding,)
    except ValidationError as error:
        # A valid spec does not load the messages.
        from provision.source.schema_findings import to_findings

        return None, to_findings(source, data, error, registry)


def default_spec_name(source: Source) -> str:
    """Return the name of a spec without one: a valid form of its file's stem."""
    name = re.sub(r"[^a-z0-9]+", "-", source.path.stem.lower()).strip("-")
    return name[:63].strip("-") or "environment"
