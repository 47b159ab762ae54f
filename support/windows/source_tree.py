"""The Python files of a release: of a wheel by byte ranges, or of a small source distribution."""

from __future__ import annotations

import ast
import io
import re
import tarfile
import warnings
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from remaking.index import File, Index, Source
from windows.outline import outline

GAP = 1 << 18
"""Bytes between two members that are fetched rather than paid for with another request."""
_COMPILED = re.compile(r"^(?P<module>.+?)(\.(cpython-|abi3|cp3|pypy)[^/]*)?\.(so|pyd)$")


class SourceTree:
    """The modules of a release by dotted name. Compiled modules are known by name only."""

    def __init__(self, path: Path) -> None:
        """Open a wheel, or what `fetch_sources` kept of a release."""
        self._archive = ZipFile(path)
        self.paths: dict[str, str] = {}
        self.packages: set[str] = set()
        self.compiled: set[str] = set()
        for name in self._archive.namelist():
            self._add(name)

    def has_module(self, module: str) -> bool:
        """Return whether a module exists, as Python, compiled, or as a folder of modules."""
        return module in self.paths or module in self.compiled or module in self._folders

    def lacks_own(self, module: str) -> bool:
        """Return whether a module of the package is missing: what imports it is never run.

        transformers 4 lists one that does not exist, for type checkers.
        """
        parts = module.split(".")
        parents = {".".join(parts[:end]) for end in range(1, len(parts))}
        is_own = self.has_module(parts[0]) and self.compiled.isdisjoint(parents)
        return is_own and not self.has_module(module)

    def text(self, module: str) -> str:
        """Return the source of a module, "" if it has none."""
        path = self.paths.get(module)
        return self._archive.read(path).decode("utf-8", "replace") if path else ""

    def checksum(self, module: str) -> int:
        """Return the checksum of a module's text; modules with equal ones are read once."""
        return self._archive.getinfo(self.paths[module]).CRC

    def parse(self, module: str) -> ast.Module | None:
        """Return the syntax tree of a module; None if it cannot be parsed."""
        return parse(self.text(module))

    def parse_outline(self, module: str, *, classes: bool) -> ast.Module | None:
        """Return the syntax tree without the bodies of functions, and of classes if `classes`."""
        text = self.text(module)
        return parse(outline(text, classes=classes)) or parse(text)

    def metadata(self) -> str:
        """Return METADATA, "" if it is not in the copy."""
        names = [name for name in self._archive.namelist() if name.endswith(".dist-info/METADATA")]
        return self._archive.read(names[0]).decode("utf-8", "replace") if names else ""

    def absolute(self, module: str, level: int, target: str) -> str:
        """Return the module that a relative import in `module` names."""
        if not level:
            return target
        parts = module.split(".")
        if module not in self.packages:
            parts = parts[:-1]
        parts = parts[: len(parts) - level + 1]
        return ".".join([*parts, target] if target else parts)

    @cached_property
    def _folders(self) -> set[str]:
        known = {*self.paths, *self.compiled}
        return {
            ".".join(name.split(".")[:end])
            for name in known
            for end in range(1, name.count(".") + 1)
        }

    def _add(self, name: str) -> None:
        if name.endswith(".py") and not _is_wanted(name):
            self.compiled.add(name[:-3].removesuffix("/__init__").replace("/", "."))
        elif name.endswith(".py"):
            module = name[:-3].replace("/", ".")
            if module.endswith(".__init__"):
                module = module.removesuffix(".__init__")
                self.packages.add(module)
            self.paths[module] = name
        elif found := _COMPILED.match(name):
            self.compiled.add(found["module"].replace("/", "."))


def parse(text: str) -> ast.Module | None:
    """Return the syntax tree of a text; None if it cannot be parsed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None


def fetch_sources(file: File | Source, index: Index, cache: Path, module: str) -> Path:
    """Keep the Python files of a release in the cache, if they are not there, and return the copy.

    Of a wheel only the list of members, the `.py` files and METADATA are fetched: the copy has the
    size of the wheel, with holes for everything else, so that it opens as a zip file. A source
    distribution is fetched whole; the copy is a zip file of the folder `module` and METADATA.
    """
    kept = sources_path(file.name, cache)
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        half = kept.with_name(f"{kept.name}.part")
        if isinstance(file, Source):
            _pack_sources(index.text(file.url), half, module)
        else:
            _copy_sources(file, index, half)
        half.replace(kept)
    return kept


def sources_path(name: str, cache: Path) -> Path:
    """Return the path of the copy of a wheel or source distribution."""
    return cache / "sources" / (name if name.endswith(".whl") else f"{name}.zip")


def _pack_sources(data: bytes, target: Path, module: str) -> None:
    texts: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for member in archive:
            path = member.name.partition("/")[2]
            is_module = path.startswith(f"{module}/") and _is_wanted(path)
            if is_module or path == "PKG-INFO" or path.endswith(".egg-info/requires.txt"):
                opened = archive.extractfile(member)
                texts[path.rpartition("/")[2] if not is_module else path] = (
                    opened.read() if opened else b""
                )
    information = texts.pop("PKG-INFO", b"").decode("utf-8", "replace")
    required = texts.pop("requires.txt", b"").decode("utf-8", "replace")
    if "\nRequires-Dist:" not in information:
        information = "".join(_required_lines(required)) + information
    with ZipFile(target, "w", ZIP_DEFLATED) as packed:
        for path, text in texts.items():
            packed.writestr(path, text)
        packed.writestr(f"{module}.dist-info/METADATA", information)


def _required_lines(text: str) -> Iterator[str]:
    """Yield a line of METADATA for each requirement in requires.txt that belongs to no extra."""
    extra = marker = ""
    for line in filter(None, map(str.strip, text.splitlines())):
        if line.startswith("["):
            extra, _, marker = line.strip("[]").partition(":")
        elif not extra:
            yield f"Requires-Dist: {line}{f'; {marker}' if marker else ''}\n"


def _copy_sources(file: File, index: Index, target: Path) -> None:
    remote = index.open(file)
    archive = ZipFile(remote)
    with target.open("wb") as copy:
        copy.truncate(remote.size)
        wanted = [info for info in archive.infolist() if _is_wanted(info.filename)]
        for start, end in [*_spans(wanted), (archive.start_dir, remote.size)]:
            for begin in range(start, end, 8 << 20):
                remote.seek(begin)
                copy.seek(begin)
                copy.write(_read_exactly(remote, min(8 << 20, end - begin)))


def _read_exactly(remote: object, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = remote.read(size - len(data))  # type: ignore[attr-defined]
        if not part:
            break
        data += part
    return data


def _spans(members: list[ZipInfo]) -> list[tuple[int, int]]:
    """Return the byte ranges of members; ranges with a small gap between them are joined."""
    spans: list[tuple[int, int]] = []
    for info in sorted(members, key=lambda info: info.header_offset):
        start, end = info.header_offset, info.header_offset + info.compress_size + 1024
        if spans and start - spans[-1][1] < GAP:
            spans[-1] = spans[-1][0], max(end, spans[-1][1])
        else:
            spans.append((start, end))
    return spans


def _is_wanted(name: str) -> bool:
    return name.endswith((".py", ".dist-info/METADATA")) and not re.search(
        r"(^|/)(tests?|testing/_internal|include)/", name
    )
