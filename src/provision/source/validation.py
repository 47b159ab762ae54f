"""A spec's data into a Spec, or each thing wrong with its shape into a finding at the right
characters.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from provision.diagnostics import Diagnostic, RouteLocation
from provision.source.document import Source
from provision.source.findings import make_finding

if TYPE_CHECKING:
    from provision.spec import Spec


def validate_source(source: Source) -> tuple[Spec | None, tuple[Diagnostic, ...]]:
    """Return the spec and nothing, or None and what is wrong with its shape.

    A document that has no data, because its text is broken, gives (None, ()): its findings are
    in `source.diagnostics`, which callers look at in any case.
    """
    if source.data is None:
        return None, ()
    from pydantic import ValidationError  # here: who reads the text only does without the model

    from provision.spec import Spec

    data = {"name": default_spec_name(source), **source.data}
    try:
        return Spec.model_validate(data), ()
    except RecursionError:
        # packaging reads markers by recursion, a level for each parenthesis.
        return None, (
            make_finding(
                "bad-format",
                "the marker of a package is nested too deeply",
                RouteLocation(("packages",)),
                hint="write it without parentheses",
            ),
        )
    except ValidationError as error:
        from provision.source import (
            schema_findings,
        )  # here: a spec in good shape is read without it

        return None, schema_findings.to_findings(source, data, error)


def default_spec_name(source: Source) -> str:
    """Return the name that a spec without one goes by: its file's stem, made to fit."""
    return (
        re.sub(r"[^a-z0-9]+", "-", source.path.stem.lower()).strip("-")[:63].strip("-")
        or "environment"
    )
