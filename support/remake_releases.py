"""Remakes the table of all releases of much-used packages (parts/releases.yaml and .csv).

Of each package in the table, every final release, withdrawn ones included: the Pythons that it
declares and that its wheels for Linux x86_64 are made for, and what it requires of other packages
of the table, without extras, on Linux x86_64 (METADATA, or requires.txt of a source distribution).
The wheels of a release may differ in it: onnxruntime 1.18.0 requires another numpy on each Python.
Neighboring releases with the same content share a row.

Not touched: which packages the table has. Add a line with a name, and write the table again.
"""

from __future__ import annotations

import csv
import datetime
import io
import re
import sys
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from email.message import Message
from itertools import groupby
from pathlib import Path
from zipfile import BadZipFile

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from remaking.declaring import linux_wheel
from remaking.index import File, PipIndex, Source, Unreachable
from remaking.running import dated, options, rows_of
from remaking.wheels import Shelf, Wheel, bound, each, python_of, requirement_of

COLUMNS = ("package", "releases", "python", "wheels", "requires")
PLATFORM = {
    "sys_platform": "linux",
    "platform_system": "Linux",
    "platform_machine": "x86_64",
    "os_name": "posix",
    "implementation_name": "cpython",
    "platform_python_implementation": "CPython",
    "platform_release": "",
    "platform_version": "",
    "implementation_version": "",
    "extra": "",
}
Cells = tuple[str, str, str]
"""The cells `python`, `wheels` and `requires` of a release."""


def read(
    shelf: Shelf, cache: Path, names: Sequence[str], pythons: Sequence[str]
) -> Iterator[tuple[str, str, str, str, str]]:
    """Yield the rows of all packages; markers are read for `pythons`, oldest first."""
    for name in names:
        files = _files(shelf, name)
        sources = shelf.sources(name)
        versions = sorted({*files, *sources})
        releases = [(files.get(version, []), sources.get(version)) for version in versions]
        cells = each(lambda item: _release(shelf, cache, *item, names, pythons), releases)
        for content, group in groupby(zip(versions, cells, strict=True), key=lambda item: item[1]):
            yield name, " ".join(str(version) for version, _ in group), *content


def _files(shelf: Shelf, name: str) -> dict[Version, list[File]]:
    found: dict[Version, list[File]] = {}
    for file in shelf.index.wheels(name):
        if not file.version.is_prerelease:
            found.setdefault(file.version, []).append(file)
    return found


def _release(
    shelf: Shelf,
    cache: Path,
    files: list[File],
    source: Source | None,
    names: Sequence[str],
    pythons: Sequence[str],
) -> Cells:
    usual = [file for file in files if is_usual(file)]
    if not usual:
        listed = None
        if source is not None and not files:
            listed = source_requirements(shelf, cache, source)
        by_python = {} if listed is None else dict.fromkeys(pythons, listed)
        requires = "?" if listed is None else requires_text(by_python, names)
        return "", "other" if files else "none", requires

    def metadata(file: File) -> Message:
        # Not shelf.wheel, which keeps every wheel open: thousands are read here.
        return Wheel(file, shelf.index, cache).metadata()

    try:
        python = python_of(metadata(linux_wheel(usual))).replace(" ", "")
        by_python = _requirements_by_python(usual, _within(pythons, python), metadata)
    except (BadZipFile, InvalidRequirement):
        return "", wheel_pythons(usual), "?"
    return python, wheel_pythons(usual), requires_text(by_python, names)


def _requirements_by_python(
    files: list[File], pythons: Sequence[str], metadata: Callable[[File], Message]
) -> dict[str, list[Requirement]]:
    """Return what the wheel for each Python requires.

    The wheels in between are not read if the first and the last agree.
    """

    def requirements(python: str) -> list[Requirement]:
        interpreter = f"cp{python.replace('.', '')}"
        own = [file for file in files if any(tag.interpreter == interpreter for tag in file.tags)]
        texts = metadata(linux_wheel(own or files)).get_all("Requires-Dist", [])
        return [requirement_of(text) for text in texts]

    first, last = requirements(pythons[0]), requirements(pythons[-1])
    if set(first) == set(last):
        return dict.fromkeys(pythons, last)
    return {python: requirements(python) for python in pythons}


def is_usual(file: File) -> bool:
    """Return whether CPython on Linux x86_64 with glibc can use a wheel."""
    return any(
        (tag.platform == "any" or re.search(r"(?<!musl)linux.*x86_64$", tag.platform))
        and not re.fullmatch(r"cp\d+t|pp\d+.*|pypy.*|graalpy.*", tag.abi)
        for tag in file.tags
    )


def wheel_pythons(files: Iterable[File]) -> str:
    """Return the Pythons of wheels: "3.8-3.11", "3.8-" for the stable ABI, "" for any."""
    minors, stable = set(), set()
    for tag in (tag for file in files if is_usual(file) for tag in file.tags):
        found = re.fullmatch(r"cp3(\d+)", tag.interpreter)
        if tag.interpreter == "py3" or re.fullmatch(r"py3\d+", tag.interpreter):
            return ""
        if found and tag.abi == "abi3":
            stable.add(int(found[1]))
        elif found and not tag.abi.endswith("t"):
            minors.add(int(found[1]))
    if stable:
        return f"3.{min(stable | minors)}-"
    return f"3.{min(minors)}-3.{max(minors)}" if minors else "2.7-2.7"


def requires_text(listed: Mapping[str, Iterable[Requirement]], names: Iterable[str]) -> str:
    """Return requirements on packages of the table: "numpy<2>=1.17 scipy>=1@3.12-3.14".

    `listed` has the requirements on each Python, oldest first. A bound that holds on some Pythons
    only is followed by the first and the last of them.
    """
    known = set(names)
    by_name: dict[str, dict[str, list[Requirement]]] = {}
    for python, requirements in listed.items():
        for requirement in requirements:
            if (name := canonicalize_name(requirement.name)) in known:
                by_name.setdefault(name, {}).setdefault(python, []).append(requirement)
    texts = []
    for name, of_pythons in sorted(by_name.items()):
        bounds = [(python, _bound(of_pythons.get(python, ()), python)) for python in listed]
        for specifier, group in groupby(bounds, key=lambda item: item[1]):
            span = [python for python, _ in group]
            if specifier:
                where = "" if len(span) == len(listed) else f"@{span[0]}-{span[-1]}"
                texts.append(f"{name}{specifier}{where}")
    return " ".join(texts)


def _bound(requirements: Iterable[Requirement], python: str) -> str:
    place = {**PLATFORM, "python_version": python, "python_full_version": f"{python}.0"}
    fitting = [
        requirement.specifier
        for requirement in requirements
        if requirement.marker is None or requirement.marker.evaluate(place)
    ]
    together = SpecifierSet(",".join(filter(None, map(str, fitting))))
    return bound(together)


def _within(pythons: Sequence[str], declared: str) -> list[str]:
    try:
        admits = SpecifierSet(declared)
    except ValueError:
        return list(pythons)
    return [python for python in pythons if admits.contains(f"{python}.99")] or list(pythons)


def source_requirements(shelf: Shelf, cache: Path, source: Source) -> list[Requirement] | None:
    """Return what the egg-info of a source distribution requires; None if it cannot be read."""
    kept = cache / f"{source.name}.requires"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(_requires_file(shelf, source), encoding="utf-8")
    text = kept.read_text(encoding="utf-8")
    if text == "?":
        return None
    try:
        lines = re.split(r"^\[", text, maxsplit=1, flags=re.MULTILINE)[0].splitlines()
        return [requirement_of(line) for line in lines if line.strip()]
    except InvalidRequirement:
        return None


def _requires_file(shelf: Shelf, source: Source) -> str:
    """Return requires.txt of a source distribution, "?" if there is none."""
    if not source.name.endswith((".tar.gz", ".tgz")):
        return "?"
    data = shelf.index.text(source.url)
    try:
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            for member in archive:
                if re.fullmatch(r"[^/]+/(?:.+/)?[^/]+\.egg-info/requires\.txt", member.name):
                    file = archive.extractfile(member)
                    return file.read().decode("utf-8", "replace") if file else "?"
    except (tarfile.TarError, OSError, EOFError):
        return "?"
    return "?"


def main(arguments: list[str]) -> int:
    """Run the script."""
    chosen = options(arguments, __doc__ or "")
    path = chosen.tables / "parts" / "releases.csv"
    old = path.read_text(encoding="utf-8")
    names = list(dict.fromkeys(row[0] for row in list(csv.reader(old.splitlines()))[1:]))
    pythons = [row["version"] for row in rows_of(chosen.tables, "pythons")]
    index = PipIndex()
    try:
        rows = list(read(Shelf(index, chosen.cache), chosen.cache, names, pythons))
    except (Unreachable, OSError, BadZipFile) as error:
        print(f"cannot read anew: {error}", file=sys.stderr)
        return 2
    new = sheet_text(rows)
    changed = sorted({line.split(",")[0] for line in {*old.splitlines()} ^ {*new.splitlines()}})
    print(f"differs: {', '.join(changed)}" if changed else f"releases: as read, {len(rows)} rows")
    if chosen.write:
        path.write_text(new, encoding="utf-8")
        head = path.with_suffix(".yaml")
        today = datetime.datetime.now(tz=datetime.UTC).date()
        head.write_text(dated(head.read_text(encoding="utf-8"), today), encoding="utf-8")
    print(f"read {index.received / 1e6:.1f} MB from the index", file=sys.stderr)
    return int(bool(changed) and chosen.check)


def sheet_text(rows: Iterable[Sequence[str]]) -> str:
    """Return the text of the CSV."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(rows)
    return file.getvalue()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
