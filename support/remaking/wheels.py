"""Members of wheels, read from the index or from what an earlier run kept below .cache/remake."""

from __future__ import annotations

import ast
import email
import io
import re
import tarfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from email.message import Message
from pathlib import Path
from typing import TypeVar
from zipfile import ZipFile

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from remaking.index import File, Index, Source, Unreachable
from remaking.ranges import RangeFile

CACHE = Path(__file__).parents[2] / ".cache" / "remake"
ABREAST = 2
"""Requests at one time."""
LARGEST = 32 << 20
"""Bytes of the largest member that is read, as it lies in the wheel."""
_Answer = TypeVar("_Answer")
_Item = TypeVar("_Item")


class Shelf:
    """The wheels of an index; each list of files is asked for once, each wheel opened once."""

    def __init__(self, index: Index, cache: Path = CACHE) -> None:
        """Nothing is asked yet."""
        self._index, self._cache = index, cache
        self._releases: dict[str, dict[Version, list[File]]] = {}
        self._wheels: dict[str, Wheel] = {}

    @property
    def index(self) -> Index:
        """The index."""
        return self._index

    def releases(self, package: str) -> dict[Version, list[File]]:
        """Return the final releases of a package that have a wheel, oldest first; a wheel that was
        withdrawn (yanked) does not count.
        """
        if package not in self._releases:
            self._releases[package] = _releases(self._index.wheels(package))
        return self._releases[package]

    def sources(self, package: str) -> dict[Version, Source]:
        """Return the final releases of a package that have a source distribution, oldest first."""
        found = {
            source.version: source
            for source in self._index.sources(package)
            if not source.yanked and not source.version.is_prerelease
        }
        return dict(sorted(found.items()))

    def members(self, source: Source) -> list[str]:
        """Return the names of the files in a source distribution, which is fetched whole once."""
        kept = self._cache / source.name
        if not kept.exists():
            kept.parent.mkdir(parents=True, exist_ok=True)
            data = io.BytesIO(self._index.text(source.url))
            if source.name.endswith(".zip"):
                names = ZipFile(data).namelist()
            else:
                with tarfile.open(fileobj=data) as archive:
                    names = archive.getnames()
            kept.write_text("\n".join(names), encoding="utf-8")
        return kept.read_text(encoding="utf-8").splitlines()

    def newest(self, package: str) -> str:
        """Return the newest final release of a package."""
        found = self.releases(package)
        if not found:
            raise Unreachable(f"the package index has no wheel of {package}")
        return str(max(found))

    def wheel(self, file: File) -> Wheel:
        """Return a wheel."""
        return self._wheels.setdefault(file.name, Wheel(file, self._index, self._cache))


class Wheel:
    """A wheel on an index. Members are named by how their path ends; the shortest path wins."""

    def __init__(self, file: File, index: Index, cache: Path = CACHE) -> None:
        """Nothing is read yet."""
        self.file, self._index, self._kept = file, index, cache / file.name
        self._opened: tuple[ZipFile, RangeFile] | None = None

    def metadata(self) -> Message:
        """Return METADATA: by itself where the index has it (PEP 658), else out of the wheel."""
        return email.message_from_string(self.text(".dist-info/METADATA"))

    def text(self, ending: str) -> str:
        """Return a member as text, "" when there is none."""
        return (self.read(ending) or b"").decode("utf-8")

    def read(self, ending: str) -> bytes | None:
        """Return a member, None when there is none. Only its own bytes and the list of members are
        fetched; both are kept for the next run.
        """
        kept = self._kept / ending.strip("/.").replace("/", "--")
        if kept.exists():
            return kept.read_bytes() or None
        data = self._fetched(ending)
        kept.parent.mkdir(parents=True, exist_ok=True)
        half = kept.with_name(f"{kept.name}.part")
        half.write_bytes(data or b"")
        half.replace(kept)
        return data

    def members(self) -> dict[str, int]:
        """Return the size of each member, as it lies in the wheel."""
        archive, _ = self._open()
        return {info.filename: info.compress_size for info in archive.infolist()}

    def _fetched(self, ending: str) -> bytes | None:
        if ending == ".dist-info/METADATA" and self.file.metadata:
            return self._index.text(self.file.metadata)
        archive, file = self._open()
        found = min(
            (name for name in archive.namelist() if name.endswith(ending)),
            key=lambda name: (name.count("/"), name),
            default=None,
        )
        if found is None:
            return None
        info = archive.getinfo(found)
        if info.compress_size > LARGEST:
            raise Unreachable(
                f"{found} in {self.file.name} has {info.compress_size} bytes; at most "
                f"{LARGEST} are read"
            )
        file.seek(info.header_offset)
        file.read(info.compress_size + 512)  # its header and content in one request
        return archive.read(found)

    def _open(self) -> tuple[ZipFile, RangeFile]:
        if self._opened is None:
            file = self._index.open(self.file)
            self._opened = ZipFile(file), file
        return self._opened


def each(work: Callable[[_Item], _Answer], items: Iterable[_Item]) -> list[_Answer]:
    """Return `work` of every item, in order, few at a time."""
    with ThreadPoolExecutor(ABREAST) as pool:
        return list(pool.map(work, items))


def requirements(metadata: Message) -> list[Requirement]:
    """Return what a wheel asks for."""
    return [requirement_of(text) for text in metadata.get_all("Requires-Dist", [])]


def requirement_of(text: str) -> Requirement:
    """Return one line of what a wheel asks for; the forms of older metadata, `name (>=1)` and
    `>=5.1.*`, included.
    """
    plain = re.sub(r"\(([^()]*)\)(?=\s*(;|$))", r"\1", text, count=1)
    return Requirement(re.sub(r"([<>]=?\s*[\d.]+)\.\*", r"\1", plain))


def python_of(metadata: Message) -> str:
    """Return which Pythons a wheel asks for, ">=3.9" for ">=3.9.0"; "" when it does not say."""
    return re.sub(r"(\.\d+)\.0(?=$|,)", r"\1", metadata.get("Requires-Python") or "")


def bound(specifier: SpecifierSet) -> str:
    """Return a specifier as the tables have it: clauses sorted, no spaces."""
    return ",".join(sorted(str(clause) for clause in specifier))


def constants(source: str, ending: str) -> dict[str, str]:
    """Return the texts that a module gives at its top level to names with that ending; read as
    text, never run.
    """
    return {
        name[: -len(ending)]: value
        for name, value in _assigned(ast.parse(source))
        if name.endswith(ending)
    }


def _assigned(module: ast.Module) -> Iterator[tuple[str, str]]:
    for line in module.body:
        if (
            isinstance(line, ast.Assign)
            and isinstance(line.value, ast.Constant)
            and isinstance(line.value.value, str)
        ):
            yield from (
                (target.id, line.value.value)
                for target in line.targets
                if isinstance(target, ast.Name)
            )
        elif (
            isinstance(line, ast.AnnAssign)
            and isinstance(line.value, ast.Constant)
            and isinstance(line.target, ast.Name)
        ):
            yield line.target.id, str(line.value.value)


def _releases(files: Iterable[File]) -> dict[Version, list[File]]:
    found: dict[Version, list[File]] = {}
    for file in files:
        if not file.yanked and not file.version.is_prerelease:
            found.setdefault(file.version, []).append(file)
    return dict(sorted(found.items()))
