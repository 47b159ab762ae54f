"""An undeclared machine as text, for a terminal and for a bug report."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from .judging.judgement import format_bytes
from .observing.nvml import NO_LIBRARY
from .observing.variables import HARMFUL_VARIABLES

_LEAD = 11


def to_text(document: Mapping[str, Any], width: int = 0) -> str:
    """Return the document as lines of at most `width` characters (0: any).

    Control characters in foreign values are replaced.
    """
    return "".join(
        f"{row}\n"
        for label, words in _rows(document)
        for row in _broken(f"{label:<{_LEAD}} {_harmless(words)}".rstrip(), width)
    )


def to_markdown(document: Mapping[str, Any]) -> str:
    """Return the document for a bug report: a fenced block without links and mentions."""
    return "```text\n" + to_text(document).replace("`", "'") + "```\n"


def _rows(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    seen, packages = document["readings"], document["packages"]
    yield from _host_rows(seen)
    yield "driver", _driver(seen)
    yield "cards", _cards(seen)
    toolkit = "no toolkit in /usr/local/cuda"
    if seen.get("cuda.toolkit"):
        toolkit = f"toolkit {seen['cuda.toolkit']}"
    yield "cuda", _joined(toolkit, *_variables(seen))
    version = _spaced(seen, "python.version", "python.implementation")
    environment = seen.get("python.environment")
    yield "python", _joined(version, environment, seen.get("python.executable"))
    versions = _joined(*(f"{name} {version}" for name, version in packages.items()))
    yield "packages", versions or "none of those that matter for training"
    yield from (("torch", line) for line in _torch(document.get("torch")))
    yield from (("set", line) for line in _harmful(seen))
    if document["unread"]:
        yield "not read", _joined(*document["unread"])
    if isinstance(document.get("tool"), Mapping):
        yield "told by", _spaced(document["tool"], "name", "version")


def _host_rows(seen: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    kernel = _named("kernel", seen, "host.kernel")
    system = _spaced(seen, "os.id", "os.version")
    yield "system", _joined(system, seen.get("host.platform"), kernel, _glibc(seen))
    machine = seen.get("place.machine") or seen.get("host.machine")
    place = _joined(seen.get("place.product"), seen.get("place.container"), machine)
    yield "place", place or "no sign of a container or a cloud"
    yield "cpu", _joined(seen.get("host.cpu_model"), _processors(seen), seen.get("host.cpu_flags"))
    limit = _bytes(seen, "host.cgroup_ram_bytes", "limited to ")
    yield "memory", _joined(_bytes(seen, "host.ram_bytes"), limit, _shared(seen))
    yield "disk free", _joined(*_free(seen))
    files, umask = _named("open files", seen, "host.nofile"), _named("umask", seen, "user.umask")
    yield "limits", _joined(files, umask, seen.get("locale.encoding"), _person(seen))


def _broken(row: str, width: int) -> list[str]:
    """A path or a name that is longer than the line stays whole: it is there to be copied."""
    if len(row) <= width or width <= 2 * _LEAD:
        return [row]
    return textwrap.wrap(
        row,
        width,
        subsequent_indent=" " * (_LEAD + 1),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _free(seen: Mapping[str, Any]) -> Iterator[str]:
    """Return the free bytes of each folder; a full inode table counts as full."""
    for key, value in seen.items():
        if key.startswith("disk.") and key.endswith(".free_bytes") and value is not None:
            place = key[len("disk.") : -len(".free_bytes")]
            yield f"{place} {format_bytes(value)}" + (
                " (no further file)" if seen.get(f"disk.{place}.free_files") == 0 else ""
            )


def _processors(seen: Mapping[str, Any]) -> str:
    quota = seen.get("host.cpu_quota")
    return f"{_number(seen.get('host.cpus'))} usable of {seen.get('host.cpu_affinity')}" + (
        f", a quota of {_number(quota)}" if quota is not None else ""
    )


def _glibc(seen: Mapping[str, Any]) -> str:
    return f"glibc {seen['host.glibc']}" if seen.get("host.glibc") else "no glibc"


def _shared(seen: Mapping[str, Any]) -> str:
    shm = seen.get("host.shm_bytes")
    if shm is None:
        return ""
    return f"/dev/shm {format_bytes(shm)}" if shm else "no /dev/shm"


def _person(seen: Mapping[str, Any]) -> str:
    home = "" if seen.get("user.home_writable") else "the home folder is not writable"
    return _joined("root" if seen.get("user.is_root") else "", home)


def _driver(seen: Mapping[str, Any]) -> str:
    error = seen.get("driver.error")
    if error == NO_LIBRARY:
        return "no NVIDIA driver"
    if error is not None:
        return _joined(seen.get("driver.version"), f"NVML answers with error {error}")
    return _joined(
        seen.get("driver.version"),
        _named("for CUDA up to", seen, "driver.cuda"),
        _named("told by", seen, "driver.by"),
    )


def _cards(seen: Mapping[str, Any]) -> str:
    totals, used = seen.get("nvml.total_bytes") or [], seen.get("nvml.used_bytes") or []
    held = [
        f"{format_bytes(one)} of {format_bytes(whole)} in use"
        for one, whole in zip(used, totals, strict=False)
        if one is not None and whole
    ]
    shown, there = seen.get("nvml.count") or 0, seen.get("nvml.count_all") or 0
    hidden = f"CUDA_VISIBLE_DEVICES shows {shown} of {there}" if there > shown else None
    return _joined(*(seen.get("nvml.names") or ["none"]), *held, hidden)


def _variables(seen: Mapping[str, Any]) -> list[str]:
    return [
        f"{key[len('variable.') :]}={value}"
        for key, value in seen.items()
        if key.startswith("variable.")
    ]


def _torch(found: Mapping[str, Any] | None) -> Iterator[str]:
    if found is None:
        return
    if "error" in found:
        first, *_, last = [*str(found["error"]).splitlines(), ""]
        yield from filter(None, (first, last))
        return
    yield _joined(
        found.get("torch.version"),
        f"CUDA {found.get('torch.cuda') or 'none'}",
        _named("cuDNN", found, "torch.cudnn"),
        _named("instructions", found, "torch.cpu_capability"),
        _named("threads", found, "torch.threads"),
    )
    card = _joined(
        found.get("gpu.name"), _named("compute capability", found, "gpu.compute_capability")
    )
    if found.get("gpu.available"):
        yield ": ".join(filter(None, (f"sees {found.get('gpu.count', 0)} GPUs", card)))
    else:
        yield "sees no GPU"
    yield from (
        f"{key.removesuffix('.error')}: {value}"
        for key, value in found.items()
        if key.endswith(".error")
    )


def _harmful(seen: Mapping[str, Any]) -> Iterator[str]:
    for key, value in seen.items():
        name = key[len("env.") :] if key.startswith("env.") else ""
        if name in HARMFUL_VARIABLES:
            yield f"{name}{'' if value == 'set' else f'={value}'}: {HARMFUL_VARIABLES[name]}"


def _spaced(seen: Mapping[str, Any], *keys: str) -> str:
    return " ".join(str(seen[key]) for key in keys if seen.get(key))


def _named(word: str, seen: Mapping[str, Any], key: str) -> str:
    return f"{word} {seen[key]}" if seen.get(key) is not None else ""


def _bytes(seen: Mapping[str, Any], key: str, before: str = "") -> str:
    return f"{before}{format_bytes(seen[key])}" if seen.get(key) is not None else ""


def _number(value: Any) -> str:
    return f"{value:g}" if isinstance(value, (int, float)) else "?"


def _joined(*parts: Any) -> str:
    return ", ".join(str(part) for part in parts if part)


def _harmless(words: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in words)
