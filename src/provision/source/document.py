"""A spec as it was written: its data, and where each value of it stands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from provision.diagnostics import Diagnostic, Fix, Location, RelatedLocation, Route, RoutePart, Span
from provision.source import edits
from provision.source.nodes import Mapping as MappingNode
from provision.source.nodes import Scalar
from provision.source.text import TextFile, TextRange
from provision.source.value_tree import LocatedValue

_REFERENCE = re.compile(r"|projects/[^/]+/secrets/[^/]+/versions/[0-9a-z]+|[A-Z][A-Z0-9_]*")


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """One document of a spec file.

    `path` is the file as it was named, `name` how it is shown, `root` the folder that `extends`
    may not leave, `document` its number in the file (0-based).
    `data` is what the document means, with all that it extends; None when its text is too broken
    to mean anything, and then `diagnostics` says why.
    `texts` holds the spec's file and all that it extends, by the names they are shown by; `tree`
    is the merged values.
    """

    path: Path
    name: str
    root: Path
    document: int
    texts: Mapping[str, TextFile]
    tree: LocatedValue | None
    diagnostics: tuple[Diagnostic, ...]
    data: dict[str, Any] | None
    _vetted: dict[Fix, bool] = field(default_factory=dict)

    @property
    def files(self) -> dict[str, str]:
        """The decoded text of every file by the name it is shown by, without byte order marks;
        offsets count in these.
        """
        return {name: text.content for name, text in self.texts.items()}

    def span(self, where: Location) -> Span:
        """Return where in which file something stands; a route that does not exist falls back to
        the deepest part of it that does.

        The key of the whole document is its first key. Of a collection the whole stretch is
        returned, which may be many lines.
        """
        if isinstance(where, Span):
            return where
        if self.tree is None:
            return self.texts[self.name].span(0, 0)
        passed = self.tree.walk(where.route)
        last = passed[-1]
        # A missing last part of a route is best shown at the key that should hold it.
        at_key = where.part is RoutePart.KEY and len(passed) == len(where.route) + 1
        return (_key_range(last, passed) if at_key else last.at).span

    def related(self, where: Location) -> tuple[RelatedLocation, ...]:
        """Return the further places of a value that came through an alias, a merge key or both: the
        anchor, the use, the merge.
        """
        if isinstance(where, Span) or self.tree is None:
            return ()
        return tuple(
            RelatedLocation(place.span, text)
            for place, text in self.tree.walk(where.route)[-1].origins
        )

    def text(self, route: Route) -> str | None:
        """Return a scalar as its author wrote it, quotes resolved (`3.10`, not 3.1); None when
        there is no scalar at `route`.
        """
        node = self._scalar(route)
        return None if node is None else node.value

    def is_plain(self, route: Route) -> bool:
        """Tell whether there is a scalar without quotes at `route`."""
        node = self._scalar(route)
        return node is not None and node.style == ""

    def is_editable(self, route: Route) -> bool:
        """Tell whether the value at `route` stands in this file and no other value shares its text,
        so that a fix may change it.
        """
        return edits.find_own_value(self._subject, route) is not None

    def file(self, route: Route) -> str:
        """Return the name of the file that holds the value at `route`, or the deepest part of it
        that exists.
        """
        return self.name if self.tree is None else self.tree.walk(route)[-1].at.text.name

    def literal_secrets(self) -> tuple[str, ...]:
        """Return the texts that stand where a secret should be named, for whoever shows lines of
        the spec to leave out.
        """
        found = None if self.tree is None else self.tree.find(("secrets",))
        return (
            ()
            if found is None
            else tuple(text for text in found.texts() if not _REFERENCE.fullmatch(text))
        )

    def apply_fixes(self, fixes: Iterable[Fix]) -> dict[str, str]:
        """Return the new text, byte order mark included, of each file that the fixes change: none,
        or this spec's own.
        """
        wanted = tuple(fixes)
        known = self._vetted.get(wanted[0]) if len(wanted) == 1 else None
        return (
            {}
            if known is False
            else edits.apply_fixes(((self._subject, fix) for fix in wanted), trusted=known is True)
        )

    def check_fixes(self, fixes: Iterable[Fix]) -> None:
        """Find out, for many fixes at a time, which can be made; what is said of a single one is
        then known.
        """
        asked = tuple(fixes)
        good = edits.select_applicable_fixes(self._subject, asked)
        self._vetted.update((fix, fix in good) for fix in asked)

    def text_changes(self, fix: Fix) -> tuple[tuple[Span, str], ...]:
        """Return the stretches of this spec's own file that a fix replaces, each with its new text;
        () when the fix cannot be made here.
        """
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
        found = None if self.tree is None else self.tree.find(route)
        return found.node if found is not None and isinstance(found.node, Scalar) else None


def apply_fixes_together(fixes: Iterable[tuple[Source, Fix]]) -> dict[str, str]:
    """Return the new texts for fixes that belong to several documents of one file, or to several
    files.
    """
    return edits.apply_fixes((source._subject, fix) for source, fix in fixes)


def _key_range(placed: LocatedValue, passed: tuple[LocatedValue, ...]) -> TextRange:
    """Return where the key of the last value stands; an item of a list has none and stands for
    itself, the document has its first key.
    """
    if placed.key is not None:
        return placed.key
    if len(passed) == 1 and isinstance(placed.node, MappingNode) and placed.node.entries:
        first = placed.node.entries[0].key
        return TextRange(first.text, first.start, first.end)
    return placed.at
