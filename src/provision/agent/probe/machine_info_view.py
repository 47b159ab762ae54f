"""An undeclared machine as text, for a terminal and for a bug report."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

from .byte_sizes import format_bytes
from .model import ObservedValues
from .observing.nvml import NO_LIBRARY
from .observing.variables import HARMFUL_VARIABLES, describe_harm

_LEAD = 11


def to_text(document: ObservedValues, width: int = 0) -> str:
    """Return the document as lines of at most `width` characters (0: any).

    Control characters in foreign values are replaced.
    """
    return "".join(
        f"{line}\n"
        for label, text in _rows(document)
        for line in _wrapped(f"{label:<{_LEAD}} {_printable(text)}".rstrip(), width)
    )


def to_markdown(document: ObservedValues) -> str:
    """Return the document for a bug report: a fenced block without links and mentions."""
    return "```text\n" + to_text(document).replace("`", "'") + "```\n"


def _rows(document: ObservedValues) -> Iterator[tuple[str, str]]:
    seen, packages = document["readings"], document["packages"]
    yield from _host_rows(seen)
    yield "driver", _driver(seen)
    yield "cards", _cards(seen)
    toolkit = _named("toolkit", seen, "cuda.toolkit") or "no toolkit in /usr/local/cuda"
    variables = [
        f"{key.removeprefix('variable.')}={value}"
        for key, value in seen.items()
        if key.startswith("variable.")
    ]
    yield "cuda", _joined(toolkit, *variables)
    version = _spaced(seen, "python.version", "python.implementation")
    yield "python", _joined(version, seen.get("python.environment"), seen.get("python.executable"))
    versions = _joined(*(f"{name} {version}" for name, version in packages.items()))
    yield "packages", versions or "none of the packages that matter for training"
    if document.get("torch") is not None:
        yield from (("torch", line) for line in _torch(document["torch"]))
    for key, value in seen.items():
        name = key.removeprefix("env.")
        if name != key and name in HARMFUL_VARIABLES:
            yield "set", describe_harm(name, value)
    if document["unread"]:
        yield "not read", _joined(*document["unread"])
    if isinstance(document.get("tool"), dict):
        yield "reported by", _spaced(document["tool"], "name", "version")


def _host_rows(seen: ObservedValues) -> Iterator[tuple[str, str]]:
    system = _spaced(seen, "os.id", "os.version")
    glibc = _named("glibc", seen, "host.glibc") or "no glibc"
    kernel = _named("kernel", seen, "host.kernel")
    yield "system", _joined(system, seen.get("host.platform"), kernel, glibc)
    machine = seen.get("place.machine") or seen.get("host.machine")
    place = _joined(seen.get("place.product"), seen.get("place.container"), machine)
    yield "place", place or "no sign of a container or a cloud machine"
    cpus, quota = seen.get("host.cpus"), seen.get("host.cpu_quota")
    processors = f"{_number(cpus)} usable of {seen.get('host.cpu_affinity')}"
    if quota is not None:
        processors += f", a quota of {_number(quota)}"
    yield "cpu", _joined(seen.get("host.cpu_model"), processors, seen.get("host.cpu_flags"))
    shared = _bytes("/dev/shm ", seen, "host.shm_bytes")
    if seen.get("host.shm_bytes") == 0:
        shared = "no /dev/shm"
    limit = _bytes("limited to ", seen, "host.cgroup_ram_bytes")
    yield "memory", _joined(_bytes("", seen, "host.ram_bytes"), limit, shared)
    yield "disk free", _joined(*_free(seen))
    files, umask = _named("open files", seen, "host.nofile"), _named("umask", seen, "user.umask")
    root = "root" if seen.get("user.is_root") else ""
    home = "" if seen.get("user.home_writable") else "the home folder is not writable"
    yield "limits", _joined(files, umask, seen.get("locale.encoding"), root, home)


def _wrapped(row: str, width: int) -> list[str]:
    """Return lines; a path or name longer than a line stays whole, so that it can be copied."""
    if len(row) <= width or width <= 2 * _LEAD:
        return [row]
    return textwrap.wrap(
        row,
        width,
        subsequent_indent=" " * (_LEAD + 1),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _free(seen: ObservedValues) -> Iterator[str]:
    """Return the free bytes of each folder; a full inode table counts as full."""
    for key, value in seen.items():
        if key.startswith("disk.") and key.endswith(".free_bytes") and value is not None:
            folder = key.removeprefix("disk.").removesuffix(".free_bytes")
            full = seen.get(f"disk.{folder}.free_files") == 0
            yield f"{folder} {format_bytes(value)}{' (no free inodes)' if full else ''}"


def _driver(seen: ObservedValues) -> str:
    error = seen.get("driver.error")
    if error == NO_LIBRARY:
        return "no NVIDIA driver"
    if error is not None:
        return _joined(seen.get("driver.version"), f"NVML returned error {error}")
    return _joined(
        seen.get("driver.version"),
        _named("for CUDA up to", seen, "driver.cuda"),
        _named("reported by", seen, "driver.by"),
    )


def _cards(seen: ObservedValues) -> str:
    totals, used = seen.get("nvml.total_bytes") or [], seen.get("nvml.used_bytes") or []
    in_use = [
        f"{format_bytes(part)} of {format_bytes(total)} in use"
        for part, total in zip(used, totals, strict=False)
        if part is not None and total
    ]
    shown, count = seen.get("nvml.count") or 0, seen.get("nvml.count_all") or 0
    hidden = f"CUDA_VISIBLE_DEVICES exposes {shown} of {count}" if count > shown else None
    return _joined(*(seen.get("nvml.names") or ["none"]), *in_use, hidden)


def _torch(seen: ObservedValues) -> Iterator[str]:
    if "error" in seen:
        first, *_, last = [*str(seen["error"]).splitlines(), ""]
        yield from filter(None, (first, last))
        return
    yield _joined(
        seen.get("torch.version"),
        f"CUDA {seen.get('torch.cuda') or 'none'}",
        _named("cuDNN", seen, "torch.cudnn"),
        _named("instructions", seen, "torch.cpu_capability"),
        _named("threads", seen, "torch.threads"),
    )
    capability = _named("compute capability", seen, "gpu.compute_capability")
    card = _joined(seen.get("gpu.name"), capability)
    if not seen.get("gpu.available"):
        yield "does not detect a GPU"
    else:
        yield f"detects {seen.get('gpu.count', 0)} GPUs{': ' if card else ''}{card}"
    for key, value in seen.items():
        if key.endswith(".error"):
            yield f"{key.removesuffix('.error')}: {value}"


def _spaced(seen: ObservedValues, *keys: str) -> str:
    return " ".join(str(seen[key]) for key in keys if seen.get(key))


def _named(word: str, seen: ObservedValues, key: str) -> str:
    return "" if seen.get(key) is None else f"{word} {seen[key]}"


def _bytes(before: str, seen: ObservedValues, key: str) -> str:
    return "" if seen.get(key) is None else f"{before}{format_bytes(seen[key])}"


def _number(value: Any) -> str:
    return f"{value:g}" if isinstance(value, (int, float)) else "?"


def _joined(*parts: Any) -> str:
    return ", ".join(str(part) for part in parts if part)


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in text)
