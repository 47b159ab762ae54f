"""Locations of findings about an imported spec in the files that it was imported from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from provision.diagnostics import (
    Diagnostic,
    Fix,
    Location,
    RelatedLocation,
    Route,
    RouteLocation,
    Span,
)
from provision.imports.model import ImportedProject
from provision.imports.spec_text import WrittenSpec
from provision.source.nodes import to_text_file

if TYPE_CHECKING:  # most files are no notebooks
    from provision.imports.notebook_source import NotebookSource

_LISTS = ("packages", "conda_packages")
_BUILT = "pip would have to build it from source."
_OWN_ENVIRONMENT = "install the packages into a virtual environment"
_UNPINNED = "Each installation uses the newest releases available."
SPEC_WORDS = (
    (re.compile(r"\b(to|from|in) (?:`packages`|packages\b)"), r"\1 {file}"),
    (re.compile(r'(?:\bset )?`python: "(3\.\d+)"`'), r"use Python \1"),
    (re.compile(r"\bset `isolation: venv`, or "), ""),
    (re.compile(r"\bset `isolation: venv`(?: on target \S+?)?(?=$|,)"), _OWN_ENVIRONMENT),
    (re.compile(r", or set exclude_newer$"), ""),
    (
        re.compile(r", and the lock would then record the hashes of those files"),
        ", and pip installs them",
    ),
    (re.compile(r"^Without `index`, `lock` uses the PyTorch index; any"), "Any"),
    (re.compile(r"^The lock pins them, but `lock --upgrade` moves .*"), _UNPINNED),
    (re.compile(r'\bset `runtime: "([\d.]+)"`'), r"use runtime \1"),
    (re.compile(r"\b[Tt]he spec (requests|requires)\b"), r"{file} \1"),
    (re.compile(r"\bin the spec\b"), "in {file}"),
    (re.compile(r"name the index that has the release in `indexes`"), "add its index"),
    (re.compile(r"\bset `build: [^`]+`(?: on \S+)? to build it"), "build it"),
    (re.compile(r", or remove [\w -]+ from `platforms`$"), ""),
    (re.compile(r"\bbut `gpu` is [a-z]+"), "which this machine does not have"),
    (re.compile(r'\bset `cuda: "([\d.]+)"` or `cuda: auto`'), r"use CUDA \1"),
    (
        re.compile(r"^`cuda: none` conflicts with `gpu: (\S+)`"),
        r"the CPU build of torch does not use the \1",
    ),
    (re.compile(r"^set `cuda: auto`, or correct `gpu`$"), "use a build of torch for CUDA"),
    (re.compile(r"^`cuda` is not set, and the default"), "the default"),
    (re.compile(r'set `cuda: "([\d.]+)"` \(with torch ([\d.]+)\)'), r"use torch \2 for CUDA \1"),
    (re.compile(r'set `cuda: "([\d.]+)"`'), r"use a build of torch for CUDA \1"),
    (re.compile(r" on target \S+ (to keep the runtime's torch)$"), r" \1"),
    (re.compile(r" on target [^ ,]+$"), ""),
    (re.compile(r"^set `cuda: none`, or correct `gpu`$"), "use the CPU build of torch"),
    (re.compile(r"`lock` uses only wheels; it does not build this package from source\."), _BUILT),
)
"""Words of rules about a spec, and words that are true of files without one."""


class ImportedSource:
    """The imported files as the text of findings; of a notebook each cell is a file of its own.

    A finding has no fix: an edit of the spec is not an edit of these files.
    """

    document = 0
    data: dict[str, Any] | None = None

    def __init__(self, project: ImportedProject, notebooks: Iterable[NotebookSource] = ()) -> None:
        self._project = project
        self._notebooks = {notebook.notebook.name: notebook for notebook in notebooks}
        self._in_files = False

    @property
    def files(self) -> Mapping[str, str]:
        """The texts by name."""
        texts = {name: text.content for name, text in self._project.texts.items()}
        if not self._in_files:
            return texts
        cells = {name for notebook in self._notebooks.values() for name in notebook.files}
        return {name: text for name, text in texts.items() if name not in cells}

    def span(self, where: Location) -> Span:
        """Return the span of a location; a route is at the start of the first text."""
        if isinstance(where, Span):
            return where
        name, text = next(iter(self._project.texts.items()), ("", None))
        return to_text_file(name, text.content if text else "").span(0, 0)

    def apply_fixes(self, fixes: Sequence[Fix]) -> Mapping[str, str]:  # noqa: ARG002
        """Return no texts."""
        return {}

    def text_changes(self, fix: Fix) -> tuple[tuple[Span, str], ...]:  # noqa: ARG002
        """Return no changes."""
        return ()

    def findings_in_files(
        self, findings: Iterable[Diagnostic]
    ) -> tuple[tuple[Diagnostic, ...], ImportedSource]:
        """Return findings with the lines of notebook files instead of those of cells."""
        source = ImportedSource(self._project, self._notebooks.values())
        source._in_files = True
        return tuple(
            finding._replace(
                where=self._in_file(finding.where),
                related=tuple(
                    RelatedLocation(self._in_file(other.where), other.text)
                    for other in finding.related
                ),
            )
            for finding in findings
        ), source

    def _in_file(self, where: Location) -> Span:
        span = self.span(where)
        for notebook in self._notebooks.values():
            if span.file in notebook.files:
                return notebook.file_span(span)
        return span


class OriginLookup:
    """Maps locations in an imported spec to the original text."""

    def __init__(self, project: ImportedProject, written: WrittenSpec) -> None:
        self._spans = dict(written.spans)
        for setting in project.settings:
            if setting.route == ("python",):
                # A range that the chosen Python is in.
                self._spans.setdefault(setting.route, setting.span)
        for name in _LISTS:
            if (name, 0) in self._spans:
                self._spans.setdefault((name,), self._spans[name, 0])

    def find(self, where: Location) -> Span | None:
        """Return the text that a location comes from; None if no file contains it."""
        if not isinstance(where, RouteLocation):
            return None
        route: Route = where.route
        while route:
            if route in self._spans:
                return self._spans[route]
            route = route[:-1]
        return None

    def to_original(self, finding: Diagnostic) -> Diagnostic | None:
        """Return a finding at the original text; its fix is still one of the spec.

        A finding about a value that no file contains, such as the GPU, is at the first related
        value that a file contains, such as the line of torch.

        Returns:
            None if no location of the finding is in a file.
        """
        located = [(self.find(other.where), other.text) for other in finding.related]
        related = [RelatedLocation(span, text) for span, text in located if span is not None]
        where = self.find(finding.where)
        if where is None and not related:
            return None
        if where is None:
            where = next(span for span, _ in located if span is not None)
        return finding._replace(
            message=replace_spec_words(finding.message, where.file),
            where=where,
            why=replace_spec_words(finding.why, where.file),
            help=replace_spec_words(finding.help, where.file),
            related=tuple(other for other in related if other.where != where),
        )


def replace_spec_words(text: str, file: str) -> str:
    """Return the text of a rule in words that fit a file that is not a spec."""
    for pattern, words in SPEC_WORDS:
        text = pattern.sub(words, text)
    return text.replace("{file}", file)
