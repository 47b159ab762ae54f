"""Imported files for people and programs: what was taken, what was not, and contradictions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from provision.diagnostics import Span
from provision.imports.model import ImportedFile, ImportedProject, Leftover
from provision.imports.spec_text import WrittenSpec
from provision.sanitize import redact
from provision.spelling import pluralize
from provision.views.diagnostics.source_location import format_location, redact_line
from provision.views.formatting import indent_rest, wrap


def render_summary(
    files: Sequence[tuple[Path, ImportedFile]],
    project: ImportedProject,
    spec: WrittenSpec,
    width: int,
) -> str:
    """Return what was taken from each file, what was left out, conflicts and assumptions.

    `width` is the number of cells at which the lines about what was left out are wrapped.
    """
    parts = ["\n".join(_summarize(path, file) for path, file in files)]
    leftovers = (*project.leftovers, *spec.leftovers)
    if leftovers:
        parts.append("\n".join(["Left out or changed:", *render_leftovers(leftovers, width)]))
    if project.conflicts:
        lines = ["Conflicts (the first value is in the spec):"]
        for conflict in project.conflicts:
            where = f"{format_location(conflict.where)}, {format_location(conflict.other)}"
            lines.append(f"  {where}: {redact_line(conflict.message)}")
        parts.append("\n".join(lines))
    if spec.assumptions:
        lines = [
            f"  {field}: {redact_line(assumed.value)} ({redact_line(assumed.reason)})"
            for field, assumed in spec.assumptions.items()
        ]
        parts.append("\n".join(["Assumed:", *lines]))
    return "\n\n".join(parts) + "\n"


def to_json(
    files: Sequence[tuple[Path, ImportedFile]], project: ImportedProject, spec: WrittenSpec
) -> dict[str, Any]:
    """Return the same as data, with the text of the spec."""
    return {
        "spec": spec.text,
        "files": [
            {
                "file": str(path),
                "format": file.format,
                "packages": _count(file),
                "settings": [list(setting.route) for setting in file.settings],
            }
            for path, file in files
        ],
        "packages": [
            {"requirement": package.requirement, "index": package.index, **_at(package.span)}
            for package in project.packages
        ],
        "settings": [
            {"route": list(setting.route), "value": setting.value, **_at(setting.span)}
            for setting in project.settings
        ],
        "leftovers": leftovers_to_json((*project.leftovers, *spec.leftovers)),
        "conflicts": [
            {
                "message": redact(conflict.message),
                **_at(conflict.where),
                "other": _at(conflict.other),
            }
            for conflict in project.conflicts
        ],
        "assumptions": {field: one._asdict() for field, one in spec.assumptions.items()},
    }


def leftovers_to_json(leftovers: Iterable[Leftover]) -> list[dict[str, Any]]:
    """Return what a spec does not contain as data."""
    return [
        {
            "message": redact(part.message),
            "why": redact(part.why),
            "help": redact(part.help),
            **_at(part.span),
        }
        for part in leftovers
    ]


def _summarize(path: Path, file: ImportedFile) -> str:
    taken = [pluralize(_count(file), "package")]
    taken += dict.fromkeys(str(setting.route[0]) for setting in file.settings)
    return f"{redact_line(str(path))} ({file.format}): {', '.join(taken)}"


def _count(file: ImportedFile) -> int:
    return len({package.name for package in file.packages if not package.is_constraint})


def render_leftovers(leftovers: Iterable[Leftover], width: int) -> list[str]:
    """Return the lines about what a spec does not contain, each with its position."""
    lines: list[str] = []
    for part in leftovers:
        message = f"{format_location(part.span)}: {redact_line(part.message)}"
        lines += indent_rest("  ", wrap(message, width - 6), 6)
        for label, text in (("why: ", part.why), ("help: ", part.help)):
            if text:
                indent = 4 + len(label)
                rows = wrap(redact_line(text), width - indent)
                lines += indent_rest(f"    {label}", rows, indent)
    return lines


def render_leftovers_concise(leftovers: Iterable[Leftover]) -> str:
    """Return a line for each part that a spec does not contain: `file:line:column: note: ...`."""
    return "".join(
        f"{format_location(part.span)}: note: {redact_line(part.message)}\n" for part in leftovers
    )


def _at(span: Span) -> dict[str, Any]:
    return {"file": span.file, "line": span.start.line, "column": span.start.column}
