"""Write a first spec that a person can read, change and apply."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from packaging.version import Version

from provision.assets import find_asset
from provision.commands.import_files import ImportResult, check_output_path, import_files
from provision.commands.schema import schema_text
from provision.commands.shared.spec_text_check import check_spec_text
from provision.commands.shared.starter_targets import StarterTargets, choose_targets, platform_of
from provision.diagnostics import Severity
from provision.effects.local import MakeFolder, WriteFile
from provision.effects.system import ProgressCallback, Reader, System
from provision.errors import Refused, UsageError
from provision.facts import Facts, load_facts
from provision.imports.formats import find_importable_names
from provision.imports.model import ImportedProject
from provision.imports.spec_text import (
    STARTER_PYTHON,
    format_entry,
    provided_python,
    provided_software,
)
from provision.source.yaml_scalars import format_scalar

_STARTER_TORCH = "2.13"
"""The torch of templates/spec.yaml."""
SCHEMA_NAME = "provision.schema.json"
"""The schema for editors: next to the spec and under version control, so that clones have it."""
_SCHEMA_LINE = f"# yaml-language-server: $schema={SCHEMA_NAME}\n"
"""The first line of templates/spec.yaml, by which editors find the schema."""
_SCHEMA_MARK = b'"title": "Spec"'
_MAX_SCHEMA_BYTES = 1 << 20


def init(
    path: Path,
    system: System,
    progress: ProgressCallback,
    *,
    force: bool = False,
    gpu: str | None = None,
    kinds: Collection[str] = (),
) -> tuple[str, ...]:
    """Write the commented starter spec and its schema for editors.

    Args:
        path: The file.
        system: Writes it.
        progress: Gets the progress.
        force: Replace an existing file.
        gpu: The GPU; None for CPU.
        kinds: Kinds of target, one target for each; () for the default target.

    Returns:
        The fields whose values a person has to replace, such as "targets.workbench.project".

    Raises:
        UsageError: the name is not that of a spec, or a target cannot have the GPU.
        Refused: a file exists and `force` is not given.
    """
    _check_paths(path, system, force=force)
    text = find_asset("templates/spec.yaml").read_text(encoding="utf-8")
    facts = load_facts()
    starter = choose_targets(ImportedProject(()), kinds, gpu, facts)
    if starter.gpu or starter.targets:
        text = _fit_template(text, path, starter, facts)
    _write(path, text, system, progress)
    return starter.placeholders


def init_from(
    path: Path,
    files: Sequence[Path],
    system: System,
    progress: ProgressCallback,
    *,
    force: bool = False,
    gpu: str | None = None,
    kinds: Collection[str] = (),
) -> ImportResult:
    """Write the spec that follows from files of other tools, and its schema for editors.

    Raises:
        SourceError: a file cannot be read, or its format is not known.
        UsageError: the name is not that of a spec, or a target cannot have the GPU.
        Refused: a file exists and `force` is not given.
    """
    _check_paths(path, system, force=force)
    result = import_files(files, system, out=path, first_line=_SCHEMA_LINE, gpu=gpu, kinds=kinds)
    _write(path, result.spec.text, system, progress)
    return result


def find_importable_files(path: Path, reader: Reader) -> tuple[str, ...]:
    """Return the files in the folder of a spec that `provision import` recognizes by name."""
    folder = path.parent
    names = find_importable_names(sorted(reader.list_folder(folder)))
    return tuple(str(folder / name) for name in names)


def _fit_template(text: str, path: Path, starter: StarterTargets, facts: Facts) -> str:
    """Return the starter spec with a GPU, targets, and a Python and a torch that fit them.

    Raises:
        UsageError: the GPU or the targets cannot have what the starter spec has.
    """
    card, targets = starter.gpu or "none", starter.targets or {}
    python = provided_python(targets, card, facts) or STARTER_PYTHON
    torch = _choose_torch(card, python, targets, facts)
    changes = {
        "\ngpu: none\n": f"\ngpu: {format_scalar(card)}\n",
        f'\npython: "{STARTER_PYTHON}"\n': f'\npython: "{python}"\n',
        "\nplatforms: [linux-x86_64]\n": f"\nplatforms: [{platform_of(card, facts)}]\n",
        f"- torch=={_STARTER_TORCH}.*\n": f"- torch=={torch}.*\n",
    }
    for old, new in changes.items():
        text = text.replace(old, new)
    if targets:
        text = text[: text.index("# targets:")]
        lines = format_entry(("targets",), targets, starter.comments)
        text = "".join((text, "\n# Where the environment is created.\n", *lines))
    for finding in check_spec_text(path, text, facts).diagnostics:
        if finding.severity is Severity.ERROR:
            raise UsageError(finding.message, why=finding.why, hint=finding.help)
    return text


def _choose_torch(
    gpu: str, python: str, targets: Mapping[str, Mapping[str, Any]], facts: Facts
) -> str:
    """Return the torch that a target brings, else the newest that fits, up to the starter's."""
    for software in provided_software(targets, gpu, facts):
        if software.runtime is not None:
            return _minor(software.runtime.torch)
    card = facts.card(gpu.partition(":")[0])
    newest = Version(_STARTER_TORCH)
    for row in reversed(facts.torch):
        minor = _minor(row.release)
        fits = card is None or facts.builds_for_card(card, row.release)
        if Version(minor) <= newest and python in row.pythons and fits:
            return minor
    return _STARTER_TORCH


def _minor(release: str) -> str:
    return ".".join(release.split(".")[:2])


def _check_paths(path: Path, reader: Reader, *, force: bool) -> None:
    """Check that the spec and the schema can be written; an earlier schema is replaced."""
    check_output_path(path, reader, force=force)
    schema = path.parent / SCHEMA_NAME
    if reader.exists(schema) and not force:
        text = reader.read(schema, _MAX_SCHEMA_BYTES)
        if _SCHEMA_MARK not in text:
            raise Refused(
                f"{schema} already exists",
                why="it was not written by provision",
                hint="rename the existing file, or overwrite it with --force",
            )


def _write(path: Path, text: str, system: System, progress: ProgressCallback) -> None:
    system.perform(MakeFolder(path.parent), progress)
    system.perform(WriteFile(path.parent / SCHEMA_NAME, schema_text()), progress)
    system.perform(WriteFile(path, text), progress)
