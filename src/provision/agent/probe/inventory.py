"""Installed distributions, from the head of each metadata file."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
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
    return {
        normalize_name(name.removesuffix(".dist-info").partition("-")[0]): name
        for entry in dict.fromkeys(entries)
        for name in _listed(entry)
        if name.endswith(".dist-info") and os.path.join(entry, name) not in whole
    }


def modules_to_import(dist: Distribution) -> tuple[str, ...]:
    """Return the modules to import for a distribution: its namesake, else all public ones.

    A namespace gives its first real package. An editable distribution has its modules in the
    folders of its .pth files; if they are loaded by a finder instead, its namesake is returned.
    """
    files = _recorded(dist)
    if dist.editable:
        files = _files_of_editable(dist, files)
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
    if dist.editable and not public:
        alike = [name] if find_spec(name := dist.name.replace("-", "_")) else []
    modules = (_importable(name, files, dist.name) for name in alike or public)
    return tuple(name for name in modules if name)


def top_level_modules(entry: str) -> frozenset[str]:
    """The top-level module names that one sys.path entry offers."""
    offered = set()
    for name in _listed(entry):
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
    if not name:
        return None
    return Distribution(
        normalize_name(name), version, entry, folder, tuple(requires), _editable(folder), python
    )


def _editable(folder: str) -> bool:
    try:
        document = json.loads(read_text(Path(folder, "direct_url.json")))
    except ValueError:
        return False
    match document:
        case {"dir_info": {"editable": editable}}:
            return bool(editable)
    return False


def _recorded(dist: Distribution) -> list[str]:
    if record := read_text(Path(dist.metadata, "RECORD")):
        return [line.rsplit(",", 2)[0].strip('"') for line in record.splitlines()]
    return read_text(Path(dist.metadata, "SOURCES.txt")).splitlines()


def _files_of_editable(dist: Distribution, recorded: Sequence[str]) -> list[str]:
    """Return the namesake modules and the packages of the folders in recorded .pth files.

    Other modules may be programs of the project, such as train.py or setup.py.
    """
    files = []
    for file in recorded:
        if not file.endswith(".pth") or "/" in file:
            continue
        for line in read_text(Path(dist.entry, file)).splitlines():
            if line.strip() and not line.startswith(("import ", "import\t", "#")):
                folder = Path(dist.entry, line.strip())
                files += [path.relative_to(folder).as_posix() for path in _packages_in(folder)]
                files += [name for name in _listed(str(folder)) if _is_namesake(name, dist.name)]
    return files


def _packages_in(folder: Path) -> list[Path]:
    """Return the __init__.py of packages in a folder, or else of packages in a namespace in it."""
    for pattern in ("*/__init__.py", "*/*/__init__.py", "*/*/*/__init__.py"):
        if found := sorted(folder.glob(pattern)):
            return found
    return []


def _is_namesake(file: str, dist: str) -> bool:
    return file.endswith(_SUFFIXES) and normalize_name(file.partition(".")[0]) == dist


def _top_level(file: str) -> str:
    head, slash, _ = file.partition("/")
    if slash:
        return head if head.isidentifier() and file.endswith(_SUFFIXES) else ""
    return head.partition(".")[0] if head.endswith(_SUFFIXES) else ""


def _importable(name: str, files: Sequence[str], dist: str) -> str:
    inside = [file for file in files if file.startswith(f"{name}/")]
    if "." in name or not inside or f"{name}/__init__.py" in inside:
        return name
    packages = sorted(
        (file.removesuffix("/__init__.py") for file in inside if file.endswith("/__init__.py")),
        key=lambda package: (package.count("/"), package),
    )
    alike = [package for package in packages if normalize_name(package.replace("/", "-")) == dist]
    return (alike or packages or [name])[0].replace("/", ".")
