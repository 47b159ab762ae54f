"""Observes the host: system, CPU, memory, disk, limits, declared paths and variables."""

from __future__ import annotations

import contextlib
import locale
import os
import platform
import sys
import tempfile
from pathlib import Path

from ..context import ObserverContext
from ..instructions import AVX, cpu_flags, read_cpuinfo
from ..model import Readings
from ..text_files import find_number, read_text
from . import credentials, folders, host_context
from .cgroups import cpu_quota, memory_limit, process_limit
from .variables import HARMFUL_VARIABLES, SHOWN_VALUES, harmful_part

_ISA_FLAGS = (
    "sse4_2",
    "avx",
    "avx2",
    "fma",
    "avx512f",
    "avx512_bf16",
    "avx512_vnni",
    "amx_bf16",
    "amx_tile",
    "asimd",
    "sve",
    "bf16",
    "i8mm",
)
_SYSTEMS = {"linux": "linux", "darwin": "macos", "win32": "windows"}
_MACHINES = {"amd64": "x86_64", "x64": "x86_64", "arm64": "arm64", "aarch64": "aarch64"}


_CACHES = {
    "Hugging Face": ("HF_HOME", "XDG_CACHE_HOME"),
    "torch": ("TORCH_HOME", "XDG_CACHE_HOME"),
    "Triton": ("TRITON_CACHE_DIR", "TRITON_HOME"),
}
"""Caches in the home folder, and the variables of which one puts it elsewhere (huggingface_hub,
constants; torch, hub; triton, knobs).
"""


def _system(context: ObserverContext) -> Readings:
    release = _os_release(context.root)
    machine = _MACHINES.get(platform.machine().lower(), platform.machine().lower())
    return {
        "os.id": release.get("ID", sys.platform),
        "os.version": release.get("VERSION_ID", platform.release()).split(".")[0],
        "host.platform": f"{_SYSTEMS.get(sys.platform, sys.platform)}-{machine}",
    }


def _os_release(root: Path) -> dict[str, str]:
    text = read_text(root / "etc/os-release") or read_text(root / "usr/lib/os-release")
    fields = (line.partition("=") for line in text.splitlines())
    return {key: value.strip("\"'") for key, _, value in fields}


def _libc(_context: ObserverContext) -> Readings:
    try:
        text = os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (AttributeError, ValueError, OSError):
        text = ""
    return {"host.glibc": text.split()[-1] if text.startswith("glibc") else None}


def _cpu(context: ObserverContext) -> Readings:
    affinity = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    quota = cpu_quota(context.root)
    flags = cpu_flags(context.root)
    return {
        "host.cpu_affinity": affinity,
        "host.cpu_quota": quota,
        "host.cpus": affinity if quota is None else min(float(affinity), quota),
        "host.cpu_model": read_cpuinfo(context.root).get("model name")
        or platform.processor()
        or None,
        "host.cpu_flags": " ".join(flag for flag in _ISA_FLAGS if flag in flags),
    }


def _instructions(context: ObserverContext) -> Readings:
    flags = cpu_flags(context.root)
    return {
        "host.missing_instructions": [name for name in (AVX,) if name not in flags]
        if flags
        else None
    }


def _memory(context: ObserverContext) -> Readings:
    kibibytes = find_number(read_text(context.root / "proc/meminfo"), "MemTotal:")
    if kibibytes is None:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    else:
        total = kibibytes * 1024
    return {"host.ram_bytes": total, "host.cgroup_ram_bytes": memory_limit(context.root)}


def _disk(context: ObserverContext) -> Readings:
    places = {
        "environment": context.expected.python_prefix,
        "tmp": tempfile.gettempdir(),
        "hf_cache": folders.hf_cache(context),
    }
    if context.expected.target.get("kind") == "local" and (working := folders.working_folder()):
        places["working"] = working
    places.update({f"path.{name}": path for name, path in context.expected.paths.items()})
    # What is mounted read-only (an image in squashfs) needs no free space; W01 and W03 show which
    # folders have to be writable.
    readings: Readings = {}
    for name, path in places.items():
        if not name.startswith("path.") and folders.is_read_only(Path(path)):
            readings[f"disk.{name}.read_only"] = True
            continue
        readings[f"disk.{name}.free_bytes"], files = folders.free_space(Path(path))
        if files is not None:
            readings[f"disk.{name}.free_files"] = files
    return readings


def _shared_memory(context: ObserverContext) -> Readings:
    folder = context.root / "dev/shm"
    if not sys.platform.startswith("linux"):
        return {"host.shm_bytes": None, "_shm.applies": False}
    size, left, state = 0, 0, "absent"
    with contextlib.suppress(FileNotFoundError):
        usage = os.statvfs(folder)
        size, left = usage.f_blocks * usage.f_frsize, usage.f_bavail * usage.f_frsize
        state = folders.describe_writability(folder)
    return {
        "host.shm_bytes": size,
        "host.shm_free_bytes": left,
        "host.shm_state": state,
        "_shm.applies": True,
    }


def _open_files(_context: ObserverContext) -> Readings:
    try:
        import resource
    except ImportError:
        return {"host.nofile": None}
    return {"host.nofile": resource.getrlimit(resource.RLIMIT_NOFILE)[0]}


def _person(context: ObserverContext) -> Readings:
    home = os.path.expanduser("~")
    umask = os.umask(0o077)
    os.umask(umask)
    return {
        "locale.encoding": locale.getpreferredencoding(False).lower(),
        "user.home_writable": _takes_files(home),
        "user.caches_in_home": [
            name
            for name, variables in _CACHES.items()
            if not any(context.environ.get(variable) for variable in variables)
        ],
        "user.is_root": getattr(os, "geteuid", lambda: -1)() == 0,
        "user.umask": f"{umask:04o}",
    }


def _takes_files(folder: str) -> bool:
    """Return whether a file can be made there; root's permissions ignore read-only mounts."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _declared_paths(context: ObserverContext) -> Readings:
    readings: Readings = {}
    for name, text in context.expected.paths.items():
        path = Path(text)
        readings |= {
            f"path.{name}.state": _path_state(path, context.expected.nonce),
            f"path.{name}.link": os.path.realpath(path) != os.path.normpath(path),
            f"path.{name}.filesystem": _filesystem(context.root, path),
        }
    return readings


def _path_state(path: Path, nonce: str) -> str:
    if (state := folders.describe_path(path)) != "folder":
        return state
    first = path / f".provision-probe-{nonce[:12]}-{os.getpid()}"
    second = first.with_name(first.name + "-renamed")
    try:
        with open(first, "xb") as out:
            out.write(b"provision\n")
            out.flush()
            os.fsync(out.fileno())
        os.rename(first, second)
        second.unlink()
    except OSError as error:
        for file in (first, second):
            with contextlib.suppress(OSError):
                file.unlink()
        return f"not writable: {error.strerror}"
    return "writable"


def _filesystem(root: Path, path: Path) -> str | None:
    real, best, kind = os.path.realpath(path), "", None
    for line in read_text(root / "proc/self/mountinfo").splitlines():
        fields = line.split()
        mount = fields[4].replace("\\040", " ")
        inside = real == mount or real.startswith(mount.rstrip("/") + "/")
        if inside and len(mount) >= len(best) and "-" in fields:
            best, kind = mount, fields[fields.index("-") + 1]
    return kind


def _harmful_variables(context: ObserverContext) -> Readings:
    readings = {}
    for name in HARMFUL_VARIABLES:
        value = harmful_part(name, context.environ.get(name, ""), context.root)
        if value and name not in context.expected.env:
            readings[f"env.{name}"] = value if name in SHOWN_VALUES else "set"
    return readings


def _declared_variables(context: ObserverContext) -> Readings:
    secret = frozenset(context.expected.secrets)
    return {
        f"declared_env.{name}": "set" if name in secret else context.environ.get(name)
        for name in context.expected.env
    }


_LIMITS = {
    "host.address_space_bytes": "RLIMIT_AS",
    "host.file_size_bytes": "RLIMIT_FSIZE",
    "host.cpu_time_s": "RLIMIT_CPU",
    "host.nproc": "RLIMIT_NPROC",
}


def _limits(context: ObserverContext) -> Readings:
    """Return each soft limit, None for unlimited, and the processes left in the control group."""
    try:
        import resource
    except ImportError:
        return {**dict.fromkeys(_LIMITS), "host.pids": None}
    values = {
        key: resource.getrlimit(getattr(resource, name))[0]
        for key, name in _LIMITS.items()
        if hasattr(resource, name)
    }
    limits = {
        key: None if value == resource.RLIM_INFINITY else value for key, value in values.items()
    }
    return {**dict.fromkeys(_LIMITS), **limits, "host.pids": process_limit(context.root)}


OBSERVERS = {
    "H01": _system,
    "H02": _libc,
    "H04": _cpu,
    "H05": _memory,
    "H06": _disk,
    "H07": _shared_memory,
    "H08": _open_files,
    "H10": _person,
    "H12": _limits,
    "H13": _instructions,
    "W01": _declared_paths,
    "W03": folders.observe_folders,
    "E01": _harmful_variables,
    "E02": _declared_variables,
    **credentials.OBSERVERS,
    **host_context.OBSERVERS,
}
