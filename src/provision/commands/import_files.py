"""Turns files of other tools into a spec."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from provision.commands.shared.load import CheckedDocument
from provision.commands.shared.spec_text_check import check_spec_text
from provision.commands.shared.starter_targets import choose_targets
from provision.diagnostics import Diagnostic, RelatedLocation, Route, RouteLocation, Severity
from provision.effects.local import WriteFile
from provision.effects.system import ProgressCallback, Reader, System
from provision.errors import Refused, UsageError
from provision.facts import load_facts
from provision.imports.captures import read_capture
from provision.imports.merge import merge_files
from provision.imports.model import ImportContext, ImportedFile, ImportedProject, Leftover
from provision.imports.notebook import MAX_NOTEBOOK_BYTES, read_notebook
from provision.imports.read import read_files
from provision.imports.spec_text import WrittenSpec, write_spec
from provision.source.nodes import to_text_file

DEFAULT_NAME = Path("provision.yaml")
"""Name of a spec that is printed, in findings."""
CAPTURE_NAME = Path("capture")
"""Name of a capture that is not in a file, in findings."""


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The files by name, their merged content, the spec, and the findings about it.

    `placeholders` are the fields whose values a person has to replace.
    """

    files: tuple[tuple[Path, ImportedFile], ...]
    project: ImportedProject
    spec: WrittenSpec
    checked: CheckedDocument
    placeholders: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """1 if the rules find errors or the files contradict one another, else 0."""
        has_error = any(finding.severity is Severity.ERROR for finding in self.checked.diagnostics)
        return int(has_error or bool(self.project.conflicts))


def import_files(
    paths: Sequence[Path],
    reader: Reader,
    *,
    out: Path | None,
    groups: Collection[str] = (),
    first_line: str = "",
    gpu: str | None = None,
    kinds: Collection[str] = (),
) -> ImportResult:
    """Return the spec that follows from files; nothing is written, executed or downloaded.

    Args:
        paths: The files.
        reader: Reads them, and the files that they include.
        out: The file that the spec is for; None if it is printed.
        groups: Groups and extras to import too.
        first_line: A comment at the start of the spec.
        gpu: The GPU, instead of that in the files.
        kinds: Kinds of target, one target for each, instead of the targets in the files.

    Raises:
        SourceError: a file cannot be read, or its format is not known.
        UsageError: no file has a group that is named, or a target cannot have the GPU.
    """
    paths = tuple(dict.fromkeys(paths))
    files = read_files(paths, reader)
    check_groups(files, groups)
    return _write_spec(paths, files, out, reader, groups, kinds, gpu, first_line)


def import_capture(text: str, reader: Reader, *, out: Path | None) -> ImportResult:
    """Return the spec that follows from the text of a capture, as `import_files` of its file does.

    Raises:
        ExternalError: the text is not a capture.
    """
    file = read_capture(CAPTURE_NAME, text, ImportContext(Path(), reader))
    return _write_spec([CAPTURE_NAME], [file], out, reader)


def _write_spec(
    paths: Sequence[Path],
    files: Sequence[ImportedFile],
    out: Path | None,
    reader: Reader,
    groups: Collection[str] = (),
    kinds: Collection[str] = (),
    gpu: str | None = None,
    first_line: str = "",
) -> ImportResult:
    project, facts = merge_files(files, groups=groups), load_facts()
    starter = choose_targets(project, kinds, gpu, facts)
    spec = write_spec(project, starter.targets, gpu=starter.gpu, comments=starter.comments)
    spec = spec._replace(text=first_line + spec.text)
    checked = check_spec_text(out or DEFAULT_NAME, spec.text, facts, reader)
    missing = _find_uninstalled(paths, checked, reader)
    project = project._replace(leftovers=(*project.leftovers, *missing))
    return ImportResult(
        tuple(zip(paths, files, strict=True)),
        project,
        spec,
        _with_origins(checked, project, spec),
        starter.placeholders,
    )


def _find_uninstalled(
    paths: Sequence[Path], checked: CheckedDocument, reader: Reader
) -> Iterator[Leftover]:
    """Yield the packages that notebooks import and that neither a cell nor the spec installs."""
    notebooks = [path for path in paths if path.suffix.lower() == ".ipynb"]
    if not notebooks or checked.spec is None:
        return
    from provision.rules.notebook.context import NotebookContext
    from provision.rules.notebook.uninstalled_imports import (
        find_uninstalled_imports,
        is_preinstalled,
    )

    for path in notebooks:
        notebook = read_notebook(path, reader.read(path, MAX_NOTEBOOK_BYTES))
        context = NotebookContext(notebook, load_facts(), checked.spec)
        for found, package in find_uninstalled_imports(context):
            if not is_preinstalled(package, context.facts):
                continue
            yield Leftover(
                found.span,
                f"{found.module} is imported, but no cell installs {package}",
                "it is preinstalled on Colab, but may be missing elsewhere",
                f"add {package} to `packages`",
            )


def check_output_path(path: Path, reader: Reader, *, force: bool) -> None:
    """Check that a spec can be written to a path.

    Raises:
        UsageError: the name is not that of a spec.
        Refused: a file exists and `force` is not given.
    """
    if path.suffix not in (".yaml", ".yml"):
        raise UsageError(
            f"{path} is not a valid name for a spec",
            why="the file name of a spec must end in .yaml or .yml",
            hint=f"use a name such as {DEFAULT_NAME}",
        )
    if reader.exists(path) and not force:
        raise Refused(
            f"{path} already exists", hint="choose another file, or overwrite this one with --force"
        )


def write_imported_spec(
    result: ImportResult, path: Path, system: System, progress: ProgressCallback
) -> None:
    """Write the spec to a file."""
    system.perform(WriteFile(path, result.spec.text), progress)


def check_groups(files: Sequence[ImportedFile], groups: Collection[str]) -> None:
    """Raise UsageError if no file has a group that is named."""
    existing = {package.environment for file in files for package in file.packages} - {""}
    for group in groups:
        if group not in existing:
            named = f"the files have {', '.join(sorted(existing))}" if existing else ""
            raise UsageError(
                f"none of the files has the group {group}",
                why=named or "the files have no groups or extras",
                hint="omit --group, or use a group that is in the files",
            )


def _with_origins(
    checked: CheckedDocument, project: ImportedProject, spec: WrittenSpec
) -> CheckedDocument:
    """Return findings that also show the original text of the value that each is about."""
    named = dict.fromkeys(span.file for span in spec.spans.values())
    texts = {name: to_text_file(name, project.texts[name].content) for name in named}
    own = checked.source
    source = replace(own, texts={**texts, **own.texts})
    return checked._replace(
        source=source,
        diagnostics=tuple(_with_origin(finding, spec) for finding in checked.diagnostics),
    )


def _with_origin(finding: Diagnostic, spec: WrittenSpec) -> Diagnostic:
    if not isinstance(finding.where, RouteLocation):
        return finding
    route: Route = finding.where.route
    while route and route not in spec.spans:
        route = route[:-1]
    if not route:
        return finding
    origin = RelatedLocation(spec.spans[route], "imported from here")
    return finding._replace(related=(*finding.related, origin))
