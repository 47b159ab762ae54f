"""Builds of torch that files name by a local version, such as `torch==2.4.0+cu121`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from packaging.version import Version

from provision.diagnostics import Diagnostic, Span
from provision.facts import Facts, cuda_of
from provision.facts.versions import require_version
from provision.imports.model import ImportedFile, ImportedProject
from provision.source.findings import make_finding

_BUILD = re.compile(r"===?\s*v?([0-9][\w.]*)\+(cpu|cu\d{2,3})\b", re.IGNORECASE)
_OTHER_SOURCES = re.compile(r"--find-links|--no-index|(?:^|\s)-f[\s=]", re.MULTILINE)
_PYTORCH_INDEX = "https://download.pytorch.org/whl/"
_IN_COMMANDS = {"notebook", "requirements file"}
"""Formats that pip reads, and whose index options are therefore all that selects an index."""


class _NamedBuild(NamedTuple):
    """A package whose pin names a build: "torch", "2.4.0", "cu121"."""

    package: str
    version: str
    flavour: str
    span: Span

    @property
    def pin(self) -> str:
        return f"{self.package}=={self.version}+{self.flavour}"


def find_unpublished_builds(project: ImportedProject, facts: Facts) -> Iterator[Diagnostic]:
    """Yield a finding for each build of torch that was never published.

    Releases that the facts do not contain are not reported.
    """
    for build in _find_builds(project, facts):
        release = facts.torch_release(build.version)
        if build.package != "torch" or release is None or build.flavour in release.flavours:
            continue
        tags = ["cpu", *sorted(release.builds, key=lambda tag: require_version(cuda_of(tag)))]
        hint = f"use torch=={build.version}+{tags[-1]}"
        others = [row.release for row in facts.torch if build.flavour in row.builds]
        if others:
            newest = max(others, key=Version)
            hint += f", or torch=={newest}+{build.flavour}"
        yield make_finding(
            "torch-build-unpublished",
            f"{build.pin} was never published; the builds of torch {release.release} are "
            f"{', '.join(tags)}",
            build.span,
            why="No index has such a wheel, so the installation fails on every machine.",
            hint=hint,
        )


def find_builds_without_index(
    project: ImportedProject, files: Iterable[ImportedFile], facts: Facts, torch: str
) -> Iterator[Diagnostic]:
    """Yield a finding for each build that no index of a requirements file or notebook has.

    Args:
        project: The merged content.
        files: The files that it was merged from.
        facts: The tables of torch's releases.
        torch: The torch that a machine brings; pip does not search for that one.
    """
    read_by_pip = [file for file in files if file.format in _IN_COMMANDS]
    names = {name for file in read_by_pip for name in file.texts}
    text = "\n".join(part.content for file in read_by_pip for part in file.texts.values())
    if project.indexes or _OTHER_SOURCES.search(text):
        return  # they may have any build
    for build in _find_builds(project, facts):
        index = re.compile(rf"/whl(?:/{build.flavour})?/?(?![\w/])", re.IGNORECASE)
        is_there = build.package == "torch" and build.version == torch
        if build.span.file not in names or is_there or index.search(text):
            continue
        yield make_finding(
            "torch-build-without-index",
            f"{build.pin} is available only from the PyTorch index, which "
            f"{_name_file(build.span)} does not list",
            build.span,
            why=(
                "PyPI has only one build of each release, without `+` in its version, so pip does "
                "not find this version."
            ),
            hint=(
                f"add `--extra-index-url {_PYTORCH_INDEX}{build.flavour}`, or use "
                f"{build.package}=={build.version}"
            ),
        )


def _find_builds(project: ImportedProject, facts: Facts) -> Iterator[_NamedBuild]:
    for package in project.packages:
        if package.name in facts.flavoured and package.span.file in project.texts:
            build = _BUILD.search(_text_of(project, package.span))
            if build:
                yield _NamedBuild(package.name, build[1], build[2].lower(), package.span)


def _text_of(project: ImportedProject, span: Span) -> str:
    """Return the lines of a span from its first character."""
    lines = project.texts[span.file].content.splitlines()[span.start.line - 1 : span.end.line]
    if not lines:
        return ""
    lines[-1] = lines[-1][: span.end.column - 1]
    lines[0] = lines[0][span.start.column - 1 :]
    return "\n".join(lines)


def _name_file(span: Span) -> str:
    """Return the name of the file of a span; of a cell, that of its notebook."""
    return span.file.partition(":cell ")[0]
