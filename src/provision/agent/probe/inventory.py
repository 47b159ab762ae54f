"""Installed distributions, from the head of each metadata file."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core.versions import normalize_name
from .text_files import read_text

NOT_PACKAGES = frozenset(
    {
        "test",
        "tests",
        "testing",
        "doc",
        "docs",
        "example",
        "examples",
        "benchmark",
        "benchmarks",
        "scripts",
        "licenses",
    }
)
_SUFFIXES = (".py", ".so", ".pyd")


@dataclass(frozen=True, slots=True)
class Distribution:
    """One distribution by its metadata; `entry` is the sys.path entry that contains it."""

    name: str
    version: str
    entry: str
    metadata: str
    requires: tuple[str, ...]
    editable: bool
    python: str = ""
    """The supported Pythons (Requires-Python); "" if undeclared."""


def find_distributions(entries: Iterable[str]) -> tuple[Distribution, ...]:
    """Return the distributions of these sys.path entries, in the order of Python's search."""
    return tuple(
        distribution for entry in dict.fromkeys(entries) for distribution in _in_entry(entry)
    )


def active_distributions(dists: Sequence[Distribution]) -> dict[str, Distribution]:
    """For each name the distribution that wins, as importlib.metadata would answer."""
    winners: dict[str, Distribution] = {}
    for dist in dists:
        winners.setdefault(dist.name, dist)
    return winners


def find_damaged_distributions(
    dists: Sequence[Distribution], entries: Iterable[str]
) -> dict[str, str]:
    """Return distributions with an unreadable METADATA: name to metadata folder."""
    whole = {dist.metadata for dist in dists}
    folders = (
        os.path.join(entry, name)
        for entry in dict.fromkeys(entries)
        for name in _listed(entry)
        if name.endswith(".dist-info")
    )
    broken = (os.path.basename(folder) for folder in folders if folder not in whole)
    return {
        normalize_name(name.removesuffix(".dist-info").partition("-")[0]): name for name in broken
    }


def modules_to_import(dist: Distribution) -> tuple[str, ...]:
    """Return the modules to import for a distribution: its namesake, else all public ones.

    A namespace gives its first real package.
    """
    files = _recorded(dist)
    names = (
        {
            line.strip().replace("/", ".")
            for line in read_text(Path(dist.metadata, "top_level.txt")).splitlines()
            if line.strip()
        }
    ) or {module for module in map(_top_level, files) if module}
    public = sorted(
        name for name in names if not name.startswith("_") and name.lower() not in NOT_PACKAGES
    )
    alike = [name for name in public if normalize_name(name) == dist.name]
    modules = (_importable(name, files, dist.name) for name in alike or public)
    return tuple(name for name in modules if name)


def top_level_modules(entry: str) -> frozenset[str]:
    """The top-level module names that one sys.path entry offers."""
    try:
        names = os.listdir(entry)
    except OSError:
        return frozenset()
    offered = set()
    for name in names:
        stem, dot, _ = name.partition(".")
        if name.endswith(_SUFFIXES) or (
            not dot
            and stem.isidentifier()
            and os.path.exists(os.path.join(entry, name, "__init__.py"))
        ):
            offered.add(stem)
    return frozenset(offered)


def _in_entry(entry: str) -> Iterator[Distribution]:
    for name in _listed(entry or "."):
        if name.endswith((".dist-info", ".egg-info")):
            path = os.path.join(entry, name)
            for metadata in (os.path.join(path, "METADATA"), os.path.join(path, "PKG-INFO"), path):
                dist = _read(metadata, entry, path)
                if dist is not None:
                    yield dist
                    break


def _listed(entry: str) -> list[str]:
    try:
        return sorted(os.listdir(entry))
    except OSError:
        return []


def _read(metadata: str, entry: str, folder: str) -> Distribution | None:
    name = version = python = ""
    requires = []
    try:
        with open(metadata, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if line in ("\n", "\r\n"):
                    break
                field, _, value = line.partition(":")
                if field == "Name":
                    name = value.strip()
                elif field == "Version":
                    version = value.strip()
                elif field == "Requires-Dist":
                    requires.append(value.strip())
                elif field == "Requires-Python":
                    python = value.strip()
    except OSError:
        return None
    return (
        Distribution(
            normalize_name(name), version, entry, folder, tuple(requires), _editable(folder), python
        )
        if name
        else None
    )


def _editable(folder: str) -> bool:
    try:
        document = json.loads(Path(folder, "direct_url.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    info = document.get("dir_info") if isinstance(document, dict) else None
    return isinstance(info, dict) and bool(info.get("editable"))


def _recorded(dist: Distribution) -> list[str]:
    for name in ("RECORD", "SOURCES.txt"):
        text = read_text(Path(dist.metadata, name))
        if text:
            return [
                line.rsplit(",", 2)[0].strip('"') if name == "RECORD" else line
                for line in text.splitlines()
            ]
    return []


def _top_level(file: str) -> str:
    head, slash, _ = file.partition("/")
    if slash:
        return head if head.isidentifier() and file.endswith(_SUFFIXES) else ""
    return head.partition(".")[0] if head.endswith(_SUFFIXES) else ""


def _importable(name: str, files: Sequence[str], dist: str) -> str:
    if (
        "." in name
        or f"{name}/__init__.py" in files
        or not any(file.startswith(f"{name}/") for file in files)
    ):
        return name
    packages = sorted(
        (
            file[: -len("/__init__.py")]
            for file in files
            if file.startswith(f"{name}/") and file.endswith("/__init__.py")
        ),
        key=lambda p: (p.count("/"), p),
    )
    alike = [package for package in packages if normalize_name(package.replace("/", "-")) == dist]
    return (alike or packages or [name])[0].replace("/", ".")
