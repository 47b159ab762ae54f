"""Builds the wheels of packages from folders and repositories, each once."""

from __future__ import annotations

import hashlib
import json
import tempfile
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.utils import parse_wheel_filename
from packaging.version import Version

from provision.adapters import files
from provision.adapters.code_folder import read_code
from provision.adapters.git_repository import export_commit
from provision.adapters.user_cache import WHEELS, mark_used, prune_cache
from provision.adapters.uv.local_index import hash_file, index_url
from provision.adapters.uv.toolchain import run_uv
from provision.agent.core.code_files import unpack_code
from provision.agent.core.git_objects import MAX_POINTER_BYTES, is_lfs_pointer
from provision.agent.install.document import PackageToInstall
from provision.agent.install.uv_inputs import build_index_variables
from provision.effects.local import InstallPackages
from provision.effects.packages import IndexSource, NamedIndex
from provision.effects.wheels import BuiltWheel, PackageSource
from provision.errors import BuildRequirementsError, ExternalError, LockError, Refused
from provision.sanitize import escape_line

if TYPE_CHECKING:
    from provision.adapters.uv.toolchain import UvToolchain
    from provision.effects.system import ProgressCallback

_EARLIEST_DATE = "315532800"
"""1980-01-01, the first date of a zip file."""
_MAX_NAMED = 5
_BUILD_REQUIREMENTS = "requirements from `build-system.requires`"
"""In uv's message if it cannot resolve or install them."""
_CACHE_VERSION = "2"
"""Part of the name in the cache: to be raised when building changes."""


def build_wheel(
    source: PackageSource,
    minor: str,
    uv: UvToolchain,
    environment: Mapping[str, str],
    progress: ProgressCallback,
) -> Path:
    """Return the wheel of a package; it is built in an isolated environment if it is not cached.

    Raises:
        LockError: the files are not those that were planned or locked.
        BuildRequirementsError: what builds it cannot be installed.
        ExternalError: it cannot be built.
    """
    if source.is_wheel and source.path is not None:
        if hash_file(source.path) != source.digest:
            raise _changed_error(source)
        return source.path
    folder = _wheel_folder(source, minor, environment)
    if not folder.is_dir():
        progress(f"building {source.name}")
        folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryDirectory(prefix="making-", dir=folder.parent) as scratch:
            made = Path(scratch, "wheel")
            _build(source, minor, Path(scratch), made, uv, environment)
            with suppress(OSError):  # another process was first
                made.rename(folder)
        prune_cache(environment)
    mark_used(folder)
    return next(folder.glob("*.whl"))


def find_wheel(
    source: PackageSource, minor: str, environment: Mapping[str, str]
) -> BuiltWheel | None:
    """Return the wheel of a package if it is a file, or is in the cache."""
    wheel = source.path
    if not source.is_wheel:
        folder = _wheel_folder(source, minor, environment)
        wheel = next(folder.glob("*.whl"), None)
        mark_used(folder)
    if wheel is None or not wheel.is_file():
        return None
    content = wheel.read_bytes()
    is_other = source.is_wheel and hashlib.sha256(content).hexdigest() != source.digest
    return None if is_other else BuiltWheel(wheel.name, content)


def check_pure_wheel(wheel: Path, source: PackageSource) -> None:
    """Check a wheel for another machine.

    Raises:
        LockError: it is not the locked version.
        Refused: it was compiled on this machine.

    A wheel file was compared with the platforms of the spec when it was locked.
    """
    _check_wheel(wheel, source)
    _, _, _, tags = parse_wheel_filename(wheel.name)
    if not source.is_wheel and any(tag.platform != "any" for tag in tags):
        raise Refused(
            f"{source.name} contains compiled code, so its wheel works only on this machine",
            why=f"it was built as {wheel.name}; a wheel built here can be installed on other "
            "machines only if it is pure Python",
            hint="build its wheel for linux-x86_64 and list that file in `packages`, or move this "
            "target to a different spec",
        )


def with_built_packages(
    effect: InstallPackages,
    uv: UvToolchain,
    environment: Mapping[str, str],
    progress: ProgressCallback,
) -> InstallPackages:
    """Return the installation with a pin and an index for each package from elsewhere."""
    pins, indexes = list(effect.pins), list(effect.indexes)
    for source in effect.sources:
        if source.editable:
            build = tuple(line for line, _ in source.build)
            pins.append(
                PackageToInstall(
                    source.name, source.version, None, (), editable=str(source.path), build=build
                )
            )
            continue
        wheel = build_wheel(source, effect.minor, uv, environment, progress)
        _check_wheel(wheel, source)
        index = f"source.{source.name}"
        url = index_url(IndexSource(index, "", (wheel,)), environment)
        pins.append(PackageToInstall(source.name, source.version, index, (hash_file(wheel),)))
        indexes.append(NamedIndex(index, url))
    return effect._replace(pins=tuple(pins), indexes=tuple(indexes), sources=())


def _wheel_folder(source: PackageSource, minor: str, environment: Mapping[str, str]) -> Path:
    identity = [source.name, source.digest, source.git, source.subdirectory, source.build, minor]
    key = hashlib.sha256(json.dumps([_CACHE_VERSION, *identity]).encode()).hexdigest()[:32]
    return files.user_cache_folder(environment) / WHEELS / key


def _check_wheel(wheel: Path, source: PackageSource) -> None:
    name, version, _, _ = parse_wheel_filename(wheel.name)
    if name != source.name or version != Version(source.version):
        raise LockError(
            f"{source.name} was built as {name} {version}, but the lock has {source.version}",
            hint="run `provision lock` again",
        )
    if pointers := _find_pointers(wheel):
        hint = "build the wheel after `git lfs pull`, and list its file in `packages`"
        if source.path is not None and not source.is_wheel:
            hint = f"run `git lfs pull` in {source.path}"
        raise Refused(
            f"the wheel of {source.name} has Git LFS pointers in place of files",
            why=", ".join(map(escape_line, pointers[:_MAX_NAMED])),
            hint=hint,
        )


def _find_pointers(wheel: Path) -> list[str]:
    """Return the files of a wheel whose content is in Git LFS."""
    with zipfile.ZipFile(wheel) as archive:
        small = [info for info in archive.infolist() if 0 < info.file_size < MAX_POINTER_BYTES]
        return [info.filename for info in small if is_lfs_pointer(archive.read(info))]


def read_metadata(wheel: Path) -> str:
    """Return the METADATA of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return archive.read(name).decode("utf-8", "replace")


def _write_build_constraints(source: PackageSource, folder: Path) -> Path:
    """Write what builds a package, with hashes, and return the file."""
    path = folder / "build.txt"
    lines = (
        f"{line} {' '.join(f'--hash=sha256:{value}' for value in hashes)}\n"
        for line, hashes in source.build
    )
    path.write_text("".join(lines), encoding="utf-8")
    return path


def _build(
    source: PackageSource,
    minor: str,
    scratch: Path,
    made: Path,
    uv: UvToolchain,
    environment: Mapping[str, str],
) -> None:
    tree = scratch / "source"
    tree.mkdir()
    if source.path is None:
        export_commit(source.git, source.commit, tree, environment)
        tree = tree / (source.subdirectory or ".")
    else:
        code = read_code(source.path, source.root, source.exclude, environment, of_package=True)
        if source.digest not in ("", code.digest):
            raise _changed_error(source)
        tree = unpack_code(code.pack(), code.digest, tree)
    sources = uv.package_sources((), minor)
    variables = {
        **uv.environment(),
        # The same files give the same wheel, which is part of what is sent to other machines.
        "SOURCE_DATE_EPOCH": _EARLIEST_DATE,
        **build_index_variables(sources.default.url, sources.find_links, ()),
    }
    argv = ["build", "--wheel", "--quiet", "--out-dir", str(made)]
    argv += ["--python", str(uv.any_interpreter(minor).path)]
    if source.build:
        argv += ["--build-constraints", str(_write_build_constraints(source, scratch))]
        argv.append("--require-build-hashes")
    try:
        run_uv([*argv, str(tree)], variables, scratch)
    except (ExternalError, LockError) as error:
        why = error.why or error.what
        kind = BuildRequirementsError if _BUILD_REQUIREMENTS in why else ExternalError
        raise kind(f"{source.name} cannot be built", why=why, hint=error.hint) from error


def _changed_error(source: PackageSource) -> LockError:
    return LockError(
        f"{source.path} has changed since the plan was created",
        hint="run the command again",
    )
