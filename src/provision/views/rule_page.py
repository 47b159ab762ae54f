"""The page of one kind of finding, as text, Markdown and data."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from provision.diagnostics import Severity
from provision.views.formatting import Style, Styler, indent_rest, wrap

VERSION = 1
_WIDEST = 100
"""Cells: longer lines are hard to read. Our choice."""
_CODE = "    "


@dataclass(frozen=True, slots=True)
class RulePage:
    """The page of a rule: `markdown` is all of it, `description` its first paragraph."""

    id: str
    name: str
    severity: Severity
    summary: str
    description: str
    markdown: str
    sources: tuple[str, ...] = ()
    bad: tuple[str, ...] = ()
    good: tuple[str, ...] = ()


def render_text(page: RulePage, color: bool, width: int) -> str:
    """Return the page for a terminal of `width` cells."""
    styler, room = Styler(color), min(width, _WIDEST)
    return (
        "\n\n".join("\n".join(_block(block, styler, room)) for block in _blocks(page.markdown))
        + "\n"
    )


def to_json(page: RulePage) -> dict[str, Any]:
    """Return the page as data."""
    return {
        "version": VERSION,
        "id": page.id,
        "name": page.name,
        "severity": page.severity.value,
        "summary": page.summary,
        "description": page.description,
        "examples": {"bad": list(page.bad), "good": list(page.good)},
        "sources": list(page.sources),
        "markdown": page.markdown,
    }


def _blocks(markdown: str) -> Iterator[str]:
    """Yield headings, paragraphs, lists and fenced specs; a fence keeps its blank lines."""
    for number, part in enumerate(
        re.split(r"^```\w*\n(.*?)^```$", markdown, flags=re.MULTILINE | re.DOTALL)
    ):
        if number % 2:
            yield "\n".join((_CODE + line).rstrip() for line in part.splitlines())
        else:
            yield from (block.strip("\n") for block in re.split(r"\n\s*\n", part) if block.strip())


def _block(block: str, styler: Styler, width: int) -> Iterator[str]:
    lines = block.splitlines()
    if block.startswith(_CODE):
        yield from lines
    elif block.startswith("#"):
        yield styler(block.lstrip("# "), Style.STRONG)
    elif block.startswith("- "):
        for item in re.split(r"\n(?=- )", block):
            rows = wrap(" ".join(line.strip() for line in item[2:].splitlines()), width - 2)
            yield from indent_rest("- ", rows, 2)
    else:
        yield from wrap(" ".join(line.strip() for line in lines), width)
