"""Packages that this kernel has loaded in another version than the installed one."""

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


@dataclass(frozen=True, slots=True)
class LoadedModules:
    """Loaded files, versions that top-level modules state, and mapped files that were deleted."""

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
        # The name in parentheses may hold spaces; the 20th field after it is the start
        # (proc_pid_stat(5)).
        fields = (
            Path("/proc/self/stat")
            .read_text(encoding="ascii", errors="replace")
            .rpartition(")")[2]
            .split()
        )
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
        about = _names_of(module)
        file, version = about.get("__file__"), about.get("__version__")
        if isinstance(file, str):
            files.add(os.path.realpath(file))
            if isinstance(version, str) and "." not in name:
                versions[os.path.realpath(file)] = version
    mapped = _mapped()
    gone = frozenset(path.removesuffix(_DELETED) for path in mapped if path.endswith(_DELETED))
    return LoadedModules(
        frozenset(files | {path for path in mapped if not path.endswith(_DELETED)}), versions, gone
    )


def find_packages_in_use(
    dists: Iterable[InstalledPackage], loaded: LoadedModules
) -> tuple[str, ...]:
    """Return those packages of which something is loaded."""
    return tuple(
        sorted(
            dist.name for dist in dists if any(path in loaded.files for path in _real_files(dist))
        )
    )


def find_stale_packages(
    dists: Iterable[InstalledPackage], loaded: LoadedModules, noted: Collection[str], since_ns: int
) -> tuple[str, ...]:
    """Return the packages that a restart would load anew; `since_ns` is when this process started.

    A package is stale when it was in use when it was changed (`noted`, of this kernel), when a
    library of it is loaded whose file was replaced, or when it was
    installed after the start and a loaded module of it states another version than its metadata.
    """
    return tuple(
        sorted(
            dist.name for dist in dists if dist.name in noted or _differs(dist, loaded, since_ns)
        )
    )


def _differs(dist: InstalledPackage, loaded: LoadedModules, since_ns: int) -> bool:
    # Without the time, a module that states another version than its metadata for good would ask
    # for a restart after every restart.
    fresh = dist.installed_ns > since_ns
    if not fresh and not loaded.deleted_files:
        return False
    files = _real_files(dist)
    if not loaded.deleted_files.isdisjoint(files):
        return True
    told = [loaded.versions[path] for path in files if path in loaded.versions] if fresh else []
    return any(_plain(one) and not _public_same(one, dist.version) for one in told)


def _names_of(module: object) -> dict[str, object]:
    # A module that loads itself when it is asked for something would be loaded by an ordinary look
    # at it.
    try:
        found = object.__getattribute__(module, "__dict__")
    except AttributeError:
        return {}
    return found if isinstance(found, dict) else {}


def _plain(version: str) -> bool:
    return (
        re.fullmatch(r"\d+(\.\d+)+((a|b|rc|\.post|\.dev)\d+)?(\+[A-Za-z0-9.]+)?", version)
        is not None
    )


def _public_same(one: str, other: str) -> bool:
    return is_same_version(one.partition("+")[0], other.partition("+")[0])


def _real_files(dist: InstalledPackage) -> frozenset[str]:
    root = os.path.dirname(dist.metadata_folder)
    real = os.path.realpath(root)
    return frozenset(
        real + path[len(root) :] if path.startswith(root + os.sep) else path
        for path, _, _ in read_record(dist.metadata_folder).hashed_files
    )


def _mapped() -> frozenset[str]:
    try:
        lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return frozenset()
    columns = (line.split(None, 5) for line in lines)
    return frozenset(row[5] for row in columns if len(row) == 6 and row[5].startswith("/"))
