"""A document of a spec: its data, and the position of each value in the text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from provision.diagnostics import (
    Diagnostic,
    Fix,
    Location,
    RelatedLocation,
    Route,
    RoutePart,
    Span,
)
from provision.source import edits
from provision.source.nodes import LocatedValue, Scalar, TextFile, TextRange, to_text_range
from provision.source.nodes import Mapping as MappingNode

if TYPE_CHECKING:
    pass

_REFERENCE = re.compile(r"|projects/[^/]+/secrets/[^/]+/versions/[0-9a-z]+|[A-Z][A-Z0-9_]*")


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """A document of a spec file.

    `path` is the file as it was named, `name` its display name, `root` the folder that `extends`
    must not leave, `document` its number in the file (0-based). `texts` contains the spec's file
    and the files it extends, by display name; `tree` is the merged values. `data` is the data of
    the document with all that it extends; None if the text is broken, and then `diagnostics`
    explains why.
    """

    path: Path
    name: str
    root: Path
    document: int
    texts: Mapping[str, TextFile]
    tree: LocatedValue | None
    diagnostics: tuple[Diagnostic, ...]
    data: dict[str, Any] | None
    _checked: dict[Fix, bool] = field(default_factory=dict)

    @property
    def files(self) -> dict[str, str]:
        """The decoded text of each file by display name, without byte order marks."""
        return {name: text.content for name, text in self.texts.items()}

    def span(self, where: Location) -> Span:
        """Return the span of a location.

        A route that does not exist falls back to its deepest existing part. The key of the whole
        document is its first key. The span of a collection may cover many lines.
        """
        if isinstance(where, Span):
            return where
        if self.tree is None:
            return self.texts[self.name].span(0, 0)
        values = self.tree.walk(where.route)
        # A missing last part of a route is shown at the value that should contain it.
        if where.part is RoutePart.KEY and len(values) == len(where.route) + 1:
            return _key_range(values).span
        return values[-1].at.span

    def related(self, where: Location) -> tuple[RelatedLocation, ...]:
        """Return the other locations of a value: its anchor, its use or its merge key."""
        if isinstance(where, Span) or self.tree is None:
            return ()
        return tuple(
            RelatedLocation(related.span, text)
            for related, text in self.tree.walk(where.route)[-1].origins
        )

    def text(self, route: Route) -> str | None:
        """Return a scalar as written, with quotes resolved (`3.10`, not 3.1), or None."""
        node = self._scalar(route)
        return None if node is None else node.value

    def is_plain(self, route: Route) -> bool:
        """Return whether there is a scalar without quotes at a route."""
        node = self._scalar(route)
        return node is not None and node.style == ""

    def is_editable(self, route: Route) -> bool:
        """Return whether a value is in this file and not shared, so that a fix may change it."""
        return edits.find_own_value(self._subject, route) is not None

    def file(self, route: Route) -> str:
        """Return the name of the file with a value, or with its deepest existing part."""
        return self.name if self.tree is None else self.tree.walk(route)[-1].at.text.name

    def literal_secrets(self) -> tuple[str, ...]:
        """Return the literal values under `secrets`, which excerpts of the spec must not show."""
        if self.tree is None:
            return ()
        targets = self.tree.find(("targets",))
        names = targets.children if targets is not None else ()
        routes: list[Route] = [("secrets",), *(("targets", name, "secrets") for name in names)]
        secrets = (self.tree.find(route) for route in routes)
        texts = (text for value in secrets if value is not None for text in value.texts())
        return tuple(text for text in texts if not _REFERENCE.fullmatch(text))

    def apply_fixes(self, fixes: Iterable[Fix]) -> dict[str, str]:
        """Return the new text, byte order mark included, of each file that the fixes change.

        Only the spec's own file can change.
        """
        fixes = tuple(fixes)
        is_applicable = self._checked.get(fixes[0]) if len(fixes) == 1 else None
        if is_applicable is False:
            return {}
        return edits.apply_fixes(
            ((self._subject, fix) for fix in fixes), trusted=is_applicable is True
        )

    def check_fixes(self, fixes: Iterable[Fix]) -> None:
        """Record for many fixes at a time which are applicable, to speed up later calls."""
        if fixes := tuple(fixes):
            applicable = edits.select_applicable_fixes(self._subject, fixes)
            self._checked.update((fix, fix in applicable) for fix in fixes)

    def text_changes(self, fix: Fix) -> tuple[tuple[Span, str], ...]:
        """Return the spans that a fix replaces with the new texts; () if it is not applicable."""
        if not self.apply_fixes((fix,)):
            return ()
        own = self.texts[self.name]
        return tuple(
            (own.span(change.start, change.end), change.text)
            for change in edits.to_text_changes(self._subject, fix) or ()
        )

    @property
    def _subject(self) -> edits.EditableDocument:
        return edits.EditableDocument(self.texts[self.name], self.tree)

    def _scalar(self, route: Route) -> Scalar | None:
        value = self.tree.find(route) if self.tree else None
        return value.node if value and isinstance(value.node, Scalar) else None


def apply_fixes_together(fixes: Iterable[tuple[Source, Fix]]) -> dict[str, str]:
    """Return the new texts for fixes to several documents of a file, or to several files."""
    return edits.apply_fixes((source._subject, fix) for source, fix in fixes)


def _key_range(values: tuple[LocatedValue, ...]) -> TextRange:
    """Return the range of the last value's key.

    An item of a list is its own key; the whole document has its first key.
    """
    value = values[-1]
    if value.key is not None:
        return value.key
    if len(values) == 1 and isinstance(value.node, MappingNode) and value.node.entries:
        return to_text_range(value.node.entries[0].key)
    return value.at
