"""Adds packages to a spec and removes them: the text of the spec, and its lock with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import InvalidRequirement
from packaging.utils import InvalidName, canonicalize_name

from provision.commands.lock import LockResult, ensure_lock
from provision.commands.shared.edited_spec import load_edited_spec, write_together
from provision.commands.shared.facts_selection import select_facts
from provision.commands.shared.load import (
    LoadedSpec,
    SpecHasErrors,
    check_single_document,
    check_spec_name,
)
from provision.commands.shared.lock_file import read_lock_file
from provision.effects.system import ProgressCallback, System
from provision.errors import LockError, ProvisionError, Refused, UsageError
from provision.field_types import suggest_requirement
from provision.lock import dumps
from provision.lock.diff import LockDiff, diff_locks
from provision.source import Source
from provision.source.nodes import to_text_file
from provision.source.package_edits import (
    UneditablePackages,
    WrittenRequirement,
    edit_packages,
    listed_packages,
    parse_requirement,
)
from provision.spelling import nearest_words

_MAX_SPEC_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class PackageChanges:
    """The spec and the lock after a change of packages.

    Attributes:
        changed: The text of the spec changed.
        comparison: The differences to the lock before; None if there was none.
    """

    loaded: LoadedSpec
    locked: LockResult
    changed: bool
    comparison: LockDiff | None


def add_packages(
    path: Path, packages: tuple[str, ...], system: System, progress: ProgressCallback
) -> PackageChanges:
    """Add requirements to a spec, or change those that it lists, and lock.

    Raises:
        UsageError: a requirement is not valid, or a package is named twice.
        Refused: the packages of the spec cannot be edited.
        SpecHasErrors: the spec would have errors.
        LockError: the new spec cannot be locked; nothing is written.
    """
    return _change_packages(path, tuple(map(_parse, packages)), (), system, progress)


def remove_packages(
    path: Path, packages: tuple[str, ...], system: System, progress: ProgressCallback
) -> PackageChanges:
    """Remove packages from a spec, and lock; errors as in `add_packages`."""
    names = []
    for package in packages:
        try:
            names.append(str(canonicalize_name(package, validate=True)))
        except InvalidName:
            raise UsageError(
                f"{package}: not a valid package name",
                hint="use the name without extras or a version, as in: provision remove numpy",
            ) from None
    return _change_packages(path, (), tuple(names), system, progress)


def _change_packages(
    path: Path,
    added: tuple[WrittenRequirement, ...],
    removed: tuple[str, ...],
    system: System,
    progress: ProgressCallback,
) -> PackageChanges:
    names = [requirement.key for requirement in added] + list(removed)
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"{twice} is given twice", hint="give each package only once")
    check_spec_name(path, system)
    source = check_single_document(path, system, select_facts(path, system)).source
    text = source.texts[source.name]
    try:
        for name in removed:
            _refuse_unlisted(name, source, path)
        content = edit_packages(source.name, text.content, added, removed)
    except UneditablePackages as error:
        position = text.position(error.offset)
        raise Refused(
            f"{source.name}:{position.line}:{position.column}: provision cannot edit the "
            "packages here",
            why=error.why,
            hint="edit the spec by hand, then run `provision lock`",
        ) from None
    new = ("\ufeff" if text.bom else "") + content
    with _nothing_changed():
        loaded = load_edited_spec(path, new, system)
        before = system.read(path, _MAX_SPEC_BYTES)
        try:
            old = read_lock_file(loaded, system)
        except LockError:
            old = None  # `ensure_lock` repairs what can be read of it
        locked = ensure_lock(loaded, system, progress, repair=True)
    files: dict[Path, str] = {}
    if locked.fresh:
        files[locked.path] = dumps(locked.lock)
    if content != text.content:
        files[path.resolve()] = new
    write_together(files, {path: before}, system, progress)
    comparison = None if old is None else diff_locks(old, locked.lock)
    return PackageChanges(loaded, locked, content != text.content, comparison)


@contextmanager
def _nothing_changed() -> Iterator[None]:
    """Add to errors that nothing was changed, and remove fixes of a text that is not saved."""
    try:
        yield
    except ProvisionError as error:
        if isinstance(error, SpecHasErrors):
            error.diagnostics = tuple(item._replace(fix=None) for item in error.diagnostics)
        if "nothing was written" not in error.what:
            error.what = f"{error.what}; nothing was changed"
        raise


def _parse(package: str) -> WrittenRequirement:
    try:
        return parse_requirement(package)
    except InvalidRequirement:
        raise UsageError(
            f"{package}: expected a package from an index, with an optional version",
            hint=suggest_requirement(package) or "use a form such as 'transformers[torch]>=5.13'",
        ) from None


def _refuse_unlisted(name: str, source: Source, path: Path) -> None:
    """Raise UsageError for a package that the spec's own text does not list."""
    own = listed_packages(to_text_file(source.name, source.texts[source.name].content))
    if name in own:
        return
    for index, package in enumerate((source.data or {}).get("packages") or ()):
        written = package.get("name", "") if isinstance(package, dict) else str(package)
        if _key(written) == name:
            raise UsageError(
                f"{name} is not listed in {path}",
                why=f"it comes from {source.file(('packages', index))}, which the spec extends",
                hint="remove it there",
            )
    near = nearest_words(name, own, most=1)
    hint = f"did you mean {near[0]}?" if near else f"listed packages: {', '.join(own) or 'none'}"
    raise UsageError(f"{path} does not list the package {name}", hint=hint)


def _key(written: str) -> str:
    try:
        return parse_requirement(written).key
    except InvalidRequirement:
        return ""
