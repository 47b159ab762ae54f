"""Finds packages that this kernel has loaded in another version than the installed one."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..core.installed_packages import InstalledPackage
from ..core.record_audit import read_record
from ..core.versions import is_same_version

_DELETED = " (deleted)"
_PLAIN_VERSION = re.compile(r"\d+(\.\d+)+((a|b|rc|\.post|\.dev)\d+)?(\+[A-Za-z0-9.]+)?")


@dataclass(frozen=True, slots=True)
class LoadedModules:
    """Loaded files, `__version__` of top-level modules by file, and deleted but mapped files."""

    files: frozenset[str]
    versions: dict[str, str]
    deleted_files: frozenset[str]


@dataclass(frozen=True, slots=True)
class KernelProcess:
    """A process by its number and start, in clock ticks since boot (0 if unknown)."""

    pid: int
    started: int


def identify_kernel_process() -> KernelProcess:
    """Return this process."""
    try:
        # The name in parentheses may contain spaces; the 20th field after it is the start
        # (proc_pid_stat(5)).
        text = Path("/proc/self/stat").read_text(encoding="ascii", errors="replace")
        fields = text.rpartition(")")[2].split()
        return KernelProcess(os.getpid(), int(fields[19]))
    except (OSError, ValueError, IndexError):
        return KernelProcess(os.getpid(), 0)


def process_start_ns(kernel: KernelProcess) -> int:
    """Return when a process started, in ns since 1970, to about a second; 0 if unknown."""
    try:
        lines = Path("/proc/stat").read_text(encoding="ascii", errors="replace").splitlines()
        boot = next(int(line.split()[1]) for line in lines if line.startswith("btime"))
    except (OSError, ValueError, StopIteration):
        return 0
    return int((boot + kernel.started / os.sysconf("SC_CLK_TCK")) * 1e9)


def inspect_loaded_modules(modules: Mapping[str, object]) -> LoadedModules:
    """Return what this process has loaded, without importing or starting anything."""
    files, versions = set(), {}
    for name, module in list(modules.items()):
        attributes = _attributes(module)
        file, version = attributes.get("__file__"), attributes.get("__version__")
        if isinstance(file, str):
            path = os.path.realpath(file)
            files.add(path)
            if isinstance(version, str) and "." not in name:
                versions[path] = version
    deleted = set()
    for path in _mapped_files():
        if path.endswith(_DELETED):
            deleted.add(path.removesuffix(_DELETED))
        else:
            files.add(path)
    return LoadedModules(frozenset(files), versions, frozenset(deleted))


def find_packages_in_use(
    packages: Iterable[InstalledPackage], loaded: LoadedModules
) -> tuple[str, ...]:
    """Return the packages that have loaded files."""
    return tuple(
        sorted(
            package.name
            for package in packages
            if not loaded.files.isdisjoint(_real_files(package))
        )
    )


def find_stale_packages(
    packages: Iterable[InstalledPackage],
    loaded: LoadedModules,
    noted: Collection[str],
    since_ns: int,
) -> tuple[str, ...]:
    """Return the packages that only a restart would reload; `since_ns` is this process's start.

    A package is stale if this kernel used it when it was changed (`noted`), if one of its loaded
    libraries was replaced, or if it was installed after the start and a loaded module has another
    `__version__` than the metadata.
    """
    return tuple(
        sorted(
            package.name
            for package in packages
            if package.name in noted or _differs(package, loaded, since_ns)
        )
    )


def _differs(package: InstalledPackage, loaded: LoadedModules, since_ns: int) -> bool:
    # Without the time, a module whose `__version__` always differs from its metadata would require
    # a restart after every restart.
    is_new = package.installed_ns > since_ns
    if not is_new and not loaded.deleted_files:
        return False
    files = _real_files(package)
    if not loaded.deleted_files.isdisjoint(files):
        return True
    return is_new and any(
        _PLAIN_VERSION.fullmatch(stated) and not _is_same_public(stated, package.version)
        for stated in (loaded.versions.get(path, "") for path in files)
    )


def _attributes(module: object) -> dict[str, object]:
    # Ordinary access would trigger modules that load lazily.
    try:
        attributes = object.__getattribute__(module, "__dict__")
    except AttributeError:
        return {}
    return attributes if isinstance(attributes, dict) else {}


def _is_same_public(first: str, second: str) -> bool:
    return is_same_version(first.partition("+")[0], second.partition("+")[0])


def _real_files(package: InstalledPackage) -> frozenset[str]:
    root = os.path.dirname(package.metadata_folder)
    real = os.path.realpath(root)
    return frozenset(
        real + path[len(root) :] if path.startswith(root + os.sep) else path
        for path, _, _ in read_record(package.metadata_folder).hashed_files
    )


def _mapped_files() -> set[str]:
    try:
        lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return set()
    columns = (line.split(None, 5) for line in lines)
    return {row[5] for row in columns if len(row) == 6 and row[5].startswith("/")}
