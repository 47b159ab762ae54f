"""Packages from paths and repositories: read for a lock, and compared with it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

from provision.commands.shared.load import LoadedSpec
from provision.commands.shared.own_files import list_own_files
from provision.commands.shared.path_packages import (
    check_source,
    read_path_package,
    read_static,
)
from provision.effects.packages import UvProject
from provision.effects.system import Notice, ProgressCallback, Reader, System
from provision.effects.wheels import PackageSource
from provision.errors import LockError, Unsatisfiable
from provision.lock import Lock, digest_of
from provision.lock.inputs import is_line_locked
from provision.lock.origins import LockedOrigin
from provision.lock.package_metadata import (
    PackageMetadata,
    find_build_requires,
    parse_wheel_metadata,
    without_urls,
)
from provision.lock.source_builds import SourceBuild
from provision.lock.wheels import marker_of
from provision.sanitize import escape_line
from provision.spec import Package
from provision.target_facts import collect_target_facts


def read_origins(
    loaded: LoadedSpec, old: Lock | None, system: System, progress: ProgressCallback
) -> Mapping[str, SourceBuild]:
    """Return the packages from paths and repositories, by name. May block for minutes.

    A commit that `old` has for the same line is kept.

    Raises:
        LockError: one of them cannot be used; the message names its line.
        NetworkError: a repository cannot be reached.
        ExternalError: it has dynamic metadata and cannot be built.
    """
    origins = {}
    locked = old.packages if old is not None else ()
    commits = {
        package.name: package.origin.commit
        for package in locked
        if package.origin is not None and package.origin.git
    }
    for number, package in enumerate(loaded.spec.packages):
        if package.is_from_index:
            continue
        try:
            revision = package.rev or ""
            if old is not None and is_line_locked(package, old):
                revision = commits.get(package.key, revision)
            origins[package.key] = _read_origin(package, revision, loaded, system, progress)
        except LockError as error:
            position = loaded.position("packages", number)
            raise type(error)(f"{position}: {error.what}", why=error.why, hint=error.hint) from None
    return origins


def list_changed_origins(loaded: LoadedSpec, lock: Lock, reader: Reader) -> tuple[str, ...]:
    """Return one line for each path whose requirements, or whose wheel, are not the locked ones.

    A lock does not contain the content of a folder.
    """
    changes = []
    locked = {package.name: package for package in lock.packages}
    for line in loaded.spec.packages:
        package = locked.get(line.key)
        if line.path is None or package is None or package.origin is None:
            continue
        current = read_path_package(line, loaded.path, loaded.source.root, reader)
        if current.relative != package.origin.path:
            changes.append(f"packages: {line.key} is at {current.relative} now")
        elif current.file is not None and (current.file,) != package.files:
            changes.append(f"packages: the wheel {current.relative} has changed")
        elif current.file is None and current.digest != package.origin.metadata:
            changes.append(f"packages: the requirements of {current.relative} have changed")
    return tuple(changes)


def list_left_out(loaded: LoadedSpec, folder: Path, reader: Reader) -> tuple[str, ...]:
    """Return patterns of the files in the folder of a package that do not belong to it.

    If the folder is also that of the code, `code.exclude` applies to both.
    """
    code, own = loaded.spec.code, list_own_files(loaded, folder, reader)
    if code is None or code.git is not None:
        return own
    code_folder = (loaded.path.resolve().parent / code.path).resolve()
    return (*code.exclude, *own) if code_folder == folder.resolve() else own


def _read_origin(
    line: Package, revision: str, loaded: LoadedSpec, system: System, progress: ProgressCallback
) -> SourceBuild:
    file, subdirectory = None, line.subdirectory or ""
    if line.path is not None:
        found = read_path_package(line, loaded.path, loaded.source.root, system)
        where, metadata, text, file = found.relative, found.metadata, found.text, found.file
        origin = LockedOrigin(found.digest, path=found.relative, editable=line.editable)
        exclude = list_left_out(loaded, found.path, system)
        source = PackageSource(line.key, "", found.path, loaded.source.root, exclude)
    else:
        url = line.git or ""
        progress(Notice(f"reading {line.key} from {url}"))
        fetched = system.fetch_package(url, revision, subdirectory)
        where = f"{url} at {fetched.commit[:12]}"
        if fetched.submodules:
            names = ", ".join(map(escape_line, fetched.submodules[:5]))
            progress(Notice(f"{line.key} is built without the submodules of {url}: {names}"))
        if fetched.pointers:
            names = ", ".join(map(escape_line, fetched.pointers[:5]))
            note = f"{line.key} has Git LFS pointers in place of files: {names}"
            progress(Notice(f"warning: {note}; they are not downloaded"))
        text = fetched.pyproject or ""
        if fetched.pyproject is None and line.build is not True:
            raise LockError(
                f"{where} has no pyproject.toml",
                hint="set `subdirectory` to the folder of the package",
            )
        metadata = None if fetched.pyproject is None else read_static(line, text, where)
        digest = digest_of([text]) if metadata is None else metadata.digest
        origin = LockedOrigin(digest, git=url, commit=fetched.commit, subdirectory=subdirectory)
        source = PackageSource(
            line.key, fetched.commit, git=url, commit=fetched.commit, subdirectory=subdirectory
        )
    spec = loaded.spec
    if metadata is None:
        progress(Notice(f"building {line.key}, whose metadata is dynamic (`build: true`)"))
        built = system.build_metadata(source, spec.python, progress)
        metadata = parse_wheel_metadata(built, where)
    check_source(line, metadata, text, where, spec)
    if file is None:
        build = _lock_build(line, find_build_requires(text), loaded, system, progress)
        origin = LockedOrigin(
            origin.metadata,
            origin.path,
            origin.editable,
            origin.git,
            origin.commit,
            origin.subdirectory,
            build,
        )
    plain = PackageMetadata(
        metadata.name,
        metadata.version,
        metadata.requires_python,
        tuple(without_urls(metadata)),
        metadata.extras,
    )
    address = system.create_package_index(line.key, metadata.version, plain.text)
    return SourceBuild(line.key, metadata.version, "", file, address, origin)


def _lock_build(
    line: Package,
    requires: tuple[str, ...],
    loaded: LoadedSpec,
    system: System,
    progress: ProgressCallback,
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the versions and hashes of what builds a package.

    Raises:
        LockError: no versions have a wheel for the platform of each target.
    """
    if not requires:
        return ()
    spec = loaded.spec
    platforms: set[str] = set()
    for target in collect_target_facts(spec, loaded.facts):
        platforms.update(target.platforms)
    project = UvProject(
        spec.python,
        requires,
        environments=tuple(map(marker_of, sorted(platforms))),
        exclude_newer=spec.exclude_newer,
    )
    try:
        resolution = system.resolve(project, progress)
    except Unsatisfiable as error:
        raise LockError(
            f"no versions of the build requirements of {line.key} suit every target",
            why=error.why,
            hint="change `requires` under [build-system] in its pyproject.toml, or build its wheel "
            f"and list that file in `packages` in place of its source\n{error.hint}",
        ) from None
    rows = tomllib.loads(resolution.pylocks[""]).get("packages", ())
    return tuple(
        (
            f"{row['name']}=={row['version']}",
            tuple(sorted(wheel["hashes"]["sha256"] for wheel in row.get("wheels", ()))),
        )
        for row in rows
    )
