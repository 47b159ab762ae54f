"""Captures an environment and prints it as JSON. Installs and changes nothing.

This program stands alone: it needs Python 3.10 and the standard library, imports no installed
package and uses no network. `provision capture --print-cell` prints it as a notebook cell. For that
it repeats small pieces of the probe; a test compares its readings with those of `provision env`. It
records no path, and only the names of variables.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import platform
import re
import sys
import time
from typing import Any

from .capture_paths import find_shadowed, is_site, names_in, read_folders, search_path

TOOL = {"name": "provision", "version": "0.1.0"}
SCHEMA = "provision.capture/1"
Card = tuple[str, int | None, str]
"""Name, bytes, compute capability."""
Distributions = dict[str, tuple[dict[str, Any], str, str]]
"""For each name the metadata, the folder, the metadata folder."""
_OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE")
_NVML = ("", "/usr/lib64-nvidia/", "/usr/local/nvidia/lib64/")
"""Folders of the driver's library: those of the loader, of Colab, of containers."""
_PLAIN_VERSION = re.compile(r"\d+(\.\d+)+((a|b|rc|\.post|\.dev)\d+)?(\+[A-Za-z0-9.]+)?")


def capture_environment(root: str = "/") -> dict[str, Any]:
    """Return this environment as `provision.capture/1`."""
    distributions = _distributions()
    unread: list[str] = []
    readings: dict[str, Any] = {}
    for read in (_system, _machine, _memory, read_folders, _python, _driver, _place, _settings):
        try:
            readings.update(read(root))
        except Exception:  # noqa: BLE001
            unread.append(read.__name__.strip("_").removeprefix("read_"))
    readings.update(_torch(distributions))
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "tool": TOOL,
        "readings": dict(sorted(readings.items())),
    }
    for name, read_part in (("packages", _packages), ("modules", _stale_modules)):
        try:
            document[name] = read_part(distributions)
        except Exception:  # noqa: BLE001
            document[name] = {}
            unread.append(name)
    try:
        document["shadowed"] = find_shadowed()
    except Exception:  # noqa: BLE001
        unread.append("shadowed")
    names = (name for name in os.environ if re.match(r"[A-Za-z_]\w{0,99}\Z", name, re.ASCII))
    return {**document, "variables": sorted(names), "unread": unread}


def _system(root: str) -> dict[str, Any]:
    text = _text(root, "etc/os-release") or _text(root, "usr/lib/os-release")
    release = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    system = {"linux": "linux", "darwin": "macos", "win32": "windows"}
    machine = platform.machine().lower()
    machine = {"amd64": "x86_64", "x64": "x86_64", "aarch64": "arm64"}.get(machine, machine)
    version = release.get("VERSION_ID", platform.release()).strip("\"'")
    libc = os.confstr("CS_GNU_LIBC_VERSION") if sys.platform == "linux" else ""
    return {
        "os.id": release.get("ID", sys.platform).strip("\"'"),
        "os.version": version.split(".")[0],
        "host.platform": f"{system.get(sys.platform, sys.platform)}-{machine}",
        "host.glibc": libc.split()[-1] if libc and libc.startswith("glibc") else None,
        "host.kernel": platform.release(),
    }


def _machine(root: str) -> dict[str, Any]:
    processor = re.search(r"^model name\s*:\s*(.+)$", _text(root, "proc/cpuinfo"), re.MULTILINE)
    scheduler = getattr(os, "sched_getaffinity", None)
    return {
        "host.cpu_affinity": len(scheduler(0)) if scheduler else os.cpu_count() or 1,
        "host.cpu_model": processor[1] if processor else platform.processor() or None,
    }


def _memory(root: str) -> dict[str, Any]:
    total = re.search(r"^MemTotal:\s+(\d+)", _text(root, "proc/meminfo"), re.MULTILINE)
    size, shm = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), None
    if sys.platform == "linux":
        folder = os.path.join(root, "dev/shm")
        usage = os.statvfs(folder) if os.path.isdir(folder) else None
        shm = usage.f_blocks * usage.f_frsize if usage else 0
    return {
        "host.ram_bytes": int(total[1]) * 1024 if total else size,
        "host.cgroup_ram_bytes": _memory_limit(root),
        "host.shm_bytes": shm,
    }


def _memory_limit(root: str) -> int | None:
    limits = []
    for line in _text(root, "proc/self/cgroup").splitlines():
        number, controllers, group = line.split(":", 2)
        folder, name = "sys/fs/cgroup", "memory.max"
        if "memory" in controllers.split(","):
            folder, name = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
        elif number != "0" or controllers:
            continue
        parts = group.strip("/").split("/")
        for depth in range(len(parts) + 1):
            text = _text(root, folder, *parts[:depth], name)
            # Version 1 writes "no limit" as a number near 2**63.
            if text.isdigit() and int(text) < 1 << 60:
                limits.append(int(text))
    return min(limits) if limits else None


def _python(_root: str) -> dict[str, Any]:
    kind = "conda" if os.path.isdir(os.path.join(sys.prefix, "conda-meta")) else "system"
    return {
        "python.minor": "{}.{}".format(*sys.version_info[:2]),
        "python.version": platform.python_version(),
        "python.implementation": sys.implementation.name,
        "python.environment": "virtual environment" if sys.prefix != sys.base_prefix else kind,
    }


def _place(root: str) -> dict[str, Any]:
    value, product = os.environ.get, None
    if value("VERTEX_PRODUCT") in ("COLAB_ENTERPRISE", "WORKBENCH_INSTANCE"):
        is_colab = value("VERTEX_PRODUCT") == "COLAB_ENTERPRISE"
        product = "Colab Enterprise" if is_colab else "Vertex AI Workbench"
    elif value("COLAB_RELEASE_TAG") or os.path.exists(os.path.join(root, "var/colab/hostname")):
        product = f"Google Colab {value('COLAB_RELEASE_TAG', '')}".strip()
    version = re.search(r'"version"\s*:\s*"([\d.]+)"', _text(root, "usr/local/cuda/version.json"))
    return {
        "place.product": product,
        "cuda.toolkit": version[1] if version else None,
    }


def _settings(_root: str) -> dict[str, Any]:
    import resource

    value = os.environ.get
    return {
        "host.nofile": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        "hub.offline_by": [
            name for name in _OFFLINE if value(name, "").lower() in ("1", "true", "yes", "on")
        ],
        "user.is_root": getattr(os, "geteuid", lambda: -1)() == 0,
    }


def _driver(_root: str) -> dict[str, Any]:
    error: int | None = -1
    driver, cuda = None, None
    cards: list[Card] = []
    for folder in _NVML:
        with contextlib.suppress(OSError):
            error, driver, cuda, cards = _nvml(ctypes.CDLL(f"{folder}libnvidia-ml.so.1"))
            break
    cards = _visible(cards)
    capabilities = [tuple(map(int, card[2].split("."))) for card in cards if card[2]]
    return {
        "driver.error": error,
        "driver.version": driver,
        "driver.major": driver.split(".")[0] if driver else None,
        "driver.cuda": cuda,
        "gpu.count": len(cards),
        "gpu.name": " + ".join(sorted({card[0] for card in cards if card[0]})) or None,
        "gpu.vram_bytes": min((card[1] for card in cards if card[1]), default=None),
        "gpu.compute_capability": "{}.{}".format(*min(capabilities)) if capabilities else None,
    }


def _nvml(library: ctypes.CDLL) -> tuple[int | None, str | None, str | None, list[Card]]:
    """Return error, driver, CUDA and cards (name, bytes, capability) from the driver's library."""
    code = library.nvmlInit_v2()
    if code:
        return code, None, None, []
    byref, text, number = ctypes.byref, ctypes.create_string_buffer(96), ctypes.c_int()
    try:
        library.nvmlSystemGetDriverVersion(text, 96)
        driver = text.value.decode("ascii", "replace")
        failed = library.nvmlSystemGetCudaDriverVersion_v2(byref(number))
        cuda = None if failed else f"{number.value // 1000}.{number.value % 1000 // 10}"
        library.nvmlDeviceGetCount_v2(byref(number))
        cards = []
        for index in range(number.value):
            handle, memory = ctypes.c_void_p(), (ctypes.c_ulonglong * 3)()
            major, minor = ctypes.c_int(), ctypes.c_int()
            library.nvmlDeviceGetHandleByIndex_v2(index, byref(handle))
            failed = library.nvmlDeviceGetName(handle, text, 96)
            name = "" if failed else text.value.decode("utf-8", "replace")
            failed = library.nvmlDeviceGetMemoryInfo(handle, byref(memory))
            size = None if failed else memory[0]
            failed = library.nvmlDeviceGetCudaComputeCapability(handle, byref(major), byref(minor))
            cards.append((name, size, "" if failed else f"{major.value}.{minor.value}"))
        return None, driver, cuda, cards
    finally:
        library.nvmlShutdown()


def _visible(cards: list[Card]) -> list[Card]:
    """Return the cards that CUDA_VISIBLE_DEVICES shows; all if it has other words than numbers."""
    text = os.environ.get("CUDA_VISIBLE_DEVICES")
    words = [word.strip() for word in (text or "").split(",")]
    if text is None or any(word.startswith(("GPU-", "MIG-")) for word in words):
        return cards
    shown = []
    for word in words:
        if not word.isdigit() or int(word) >= len(cards):
            break
        shown.append(cards[int(word)])
    return shown


def _torch(distributions: Distributions) -> dict[str, Any]:
    """Return torch's version and CUDA from its files: importing it takes seconds."""
    if "torch" not in distributions:
        return {}
    head, folder, _ = distributions["torch"]
    text = _text(folder, "torch/version.py")

    def value(name: str) -> str | None:
        match = re.search(rf"^{name}\b[^=\n]*=\s*['\"]([\w.+-]+)['\"]", text, re.MULTILINE)
        return match[1] if match else None

    git = value("git_version")
    return {
        "torch.version": value("__version__") or head["version"],
        "torch.cuda": value("cuda"),
        "torch.git": git[:12] if git else None,
    }


def _distributions() -> Distributions:
    """Return the distributions by name: their metadata, their folder, their metadata folder."""
    found: Distributions = {}
    for folder in search_path():
        for name in names_in(folder):
            if not name.endswith((".dist-info", ".egg-info")):
                continue
            path = os.path.join(folder, name)
            text = _text(path, "METADATA") or _text(path, "PKG-INFO") or _text(path)
            head: dict[str, Any] = {"name": "", "version": "", "requires": []}
            for line in text.split("\n\n")[0].splitlines():
                field, _, value = line.partition(":")
                if field in ("Name", "Version"):
                    head[field.lower()] = value.strip()
                elif field == "Requires-Dist" and _applies(value.partition(";")[2]):
                    needed = re.match(r"[\w.-]+", value.strip())
                    head["requires"].append(_normal(needed[0] if needed else ""))
            if head["name"]:
                found.setdefault(_normal(head["name"]), (head, folder, path))
    return found


def _applies(marker: str) -> bool:
    """Return whether a marker can be true here; one with `or` is taken as true."""
    known = {
        "platform_system": platform.system(),
        "python_version": "{}.{:02}".format(*sys.version_info[:2]),
        "sys_platform": sys.platform,
    }
    for name, sign, value in re.findall(r"(\w+) *([<>=!]=?) *['\"]([\w.]+)", marker):
        if name == "extra":
            return False
        if " or " in marker or name not in known:
            continue
        wanted = re.sub(r"^(\d)\.(\d)\b", r"\1.0\2", ".".join(value.split(".")[:2]))
        order = "<" if known[name] < wanted else ">"
        if known[name] == wanted:
            order = "="
        if order not in sign.replace("!=", "<>"):
            return False
    return True


def _packages(distributions: Distributions) -> dict[str, Any]:
    conda = {
        _normal(name.rsplit("-", 2)[0])
        for name in names_in(os.path.join(sys.prefix, "conda-meta"))
        if name.endswith(".json")
    }
    packages = {}
    for name, (head, folder, path) in sorted(distributions.items()):
        origin = _origin(path, folder)
        origin = "conda" if origin == "unknown" and name in conda else origin
        has_mark = os.path.exists(os.path.join(path, "REQUESTED"))
        packages[name] = {
            "version": head["version"],
            "origin": origin,
            # Only pip writes REQUESTED for what a person named; uv writes it for every package.
            "requested": has_mark if _text(path, "INSTALLER").lower() == "pip" else None,
            "requires": sorted(set(head["requires"]) & set(distributions)),
        }
    return packages


def _origin(path: str, folder: str) -> str:
    installer = _text(path, "INSTALLER").lower()
    try:
        url = json.loads(_text(path, "direct_url.json"))
    except ValueError:
        url = None
    # conda builds packages from files: their direct_url.json names a folder of its build machine.
    if isinstance(url, dict) and installer != "conda":
        if "vcs_info" in url:
            return "vcs"
        if (url.get("dir_info") or {}).get("editable"):
            return "editable"
        return "file" if str(url.get("url")).startswith("file:") else "url"
    if installer in ("pip", "uv", "conda"):
        return installer
    if folder.startswith("/usr/lib/"):
        return "system"
    is_linked = path.endswith(".egg-info") and not is_site(folder)
    return "editable" if is_linked else "unknown"


def _stale_modules(distributions: Distributions) -> dict[str, Any]:
    """Return loaded modules whose version is not the installed one."""
    stale, started = {}, _process_start()
    for name, module in sorted(sys.modules.items()):
        # Ordinary access would trigger modules that load lazily.
        try:
            attributes = object.__getattribute__(module, "__dict__")
        except AttributeError:
            continue
        loaded, file = attributes.get("__version__"), attributes.get("__file__")
        if "." in name or not isinstance(loaded, str) or not isinstance(file, str):
            continue
        if not _PLAIN_VERSION.fullmatch(loaded):
            continue
        package = _package_of(name, file, distributions)
        if package is None:
            if not os.path.exists(file):
                stale[name] = {"package": _normal(name), "loaded": loaded, "installed": None}
            continue
        installed, path = distributions[package][0]["version"], distributions[package][2]
        # The version of some modules always differs from that of their package.
        is_new = os.stat(path).st_ctime > started
        if is_new and _public(loaded) != _public(installed):
            stale[name] = {"package": package, "loaded": loaded, "installed": installed}
    return stale


def _package_of(name: str, file: str, distributions: Distributions) -> str | None:
    inside = os.path.dirname(os.path.abspath(file))
    if os.path.basename(inside) == name:
        inside = os.path.dirname(inside)
    own = _normal(name)
    if own in distributions and distributions[own][1] == inside:
        return own
    for package, (_, folder, path) in distributions.items():
        if folder == inside:
            modules = _text(path, "top_level.txt").split()
            if name in modules or f"{name}/__init__.py," in _text(path, "RECORD"):
                return package
    return None


def _process_start() -> float:
    try:
        ticks = int(_text("/proc/self/stat").rpartition(")")[2].split()[19])
        uptime = float(_text("/proc/uptime").split()[0])
    except (IndexError, ValueError):
        return 0.0
    return time.time() - uptime + ticks / os.sysconf("SC_CLK_TCK")


def _public(version: str) -> str:
    return re.sub(r"(\.0)+$", "", version.partition("+")[0])


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _text(*parts: str) -> str:
    try:
        with open(os.path.join(*parts), encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


if __name__ == "__main__":
    print(json.dumps(capture_environment(), indent=1))
