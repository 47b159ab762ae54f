"""The metadata of source distributions, read without running their code."""

from __future__ import annotations

import hashlib
import re
import tarfile
import tomllib
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from packaging.metadata import parse_email
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from provision.adapters.uv.download import download_file
from provision.adapters.uv.local_index import create_once, write_index_page
from provision.effects.packages import IndexSource, Release, SourceDistribution
from provision.errors import LockError

_CACHE_VERSION = "1"
"""Part of the name in the cache: to be raised when reading or writing changes."""
_UNPACKED_LIMIT = 8 * 2**30
_TEXT_LIMIT = 4 * 2**20
_READ_ERRORS = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    OSError,
    tomllib.TOMLDecodeError,
    NotImplementedError,
    RuntimeError,
)


class _SdistFiles(NamedTuple):
    """The files with requirements: PKG-INFO, pyproject.toml and setuptools' requires.txt ("")."""

    metadata: str = ""
    pyproject: str = ""
    requires: str = ""


def create_metadata_index(
    release: Release, index: IndexSource, environment: Mapping[str, str]
) -> str:
    """Return the address of an index with a wheel of a source distribution's metadata.

    It is created once for each hash and stays in the user's cache. `environment` is uv's. May
    block for minutes; no code of the distribution is run.

    Raises:
        LockError: the source cannot be read, or is not the one that the index lists.
        NetworkError: the source cannot be downloaded.
    """
    file = release.source
    if file is None:
        raise ValueError(f"{release.package} {release.version} has no source distribution")

    def write(folder: Path) -> None:
        sdist = folder.with_name("source")
        download_file(file, index, environment, sdist)
        metadata = _render_metadata(release, file, _read_sdist(file, sdist))
        _write_index(folder, release.package, release.version, metadata)

    return create_once(f"source-{_CACHE_VERSION}-{file.sha256}", environment, write)


def create_package_index(
    name: str, version: str, metadata: str, environment: Mapping[str, str]
) -> str:
    """Return the address of an index whose only wheel has this METADATA and no files."""
    digest = hashlib.sha256(metadata.encode()).hexdigest()

    def write(folder: Path) -> None:
        _write_index(folder, name, version, metadata)

    return create_once(f"package-{_CACHE_VERSION}-{digest}", environment, write)


def _write_index(folder: Path, name: str, version: str, metadata: str) -> None:
    package_folder = folder / name
    package_folder.mkdir(parents=True)
    stem = f"{name.replace('-', '_')}-{version}"
    wheel = package_folder / f"{stem}-py3-none-any.whl"
    info = f"{stem}.dist-info"
    texts = {
        "METADATA": metadata,
        "WHEEL": "Wheel-Version: 1.0\n"
        "Generator: provision\n"
        "Root-Is-Purelib: true\n"
        "Tag: py3-none-any\n",
    }
    texts["RECORD"] = "".join(f"{info}/{file},,\n" for file in (*texts, "RECORD"))
    with zipfile.ZipFile(wheel, "w") as archive:
        for file, text in texts.items():
            archive.writestr(zipfile.ZipInfo(f"{info}/{file}"), text)
    write_index_page(package_folder, [wheel])


def _render_metadata(release: Release, file: SourceDistribution, files: _SdistFiles) -> str:
    """Return the METADATA of the wheel.

    Build requirements are included without their versions: the build uses the locked ones.
    """
    metadata, _ = parse_email(files.metadata)
    if canonicalize_name(metadata.get("name", "")) != release.package:
        raise _unreadable_error(
            file, f"its PKG-INFO belongs to {metadata.get('name') or 'no package'}"
        )
    extras = list(metadata.get("provides_extra", []))
    required = list(metadata.get("requires_dist", []))
    if not required and files.requires:  # setuptools before 68 left them out of PKG-INFO
        required = list(_parse_requires_txt(files.requires))
        extras = sorted(
            {match[1] for line in required for match in re.finditer(r"extra == '([^']+)'", line)}
            | set(extras)
        )
    try:
        lines = [str(Requirement(line)) for line in required] + list(
            _build_requirements(release, files.pyproject)
        )
        python = (
            [f"Requires-Python: {SpecifierSet(requires_python)}"]
            if (requires_python := metadata.get("requires_python"))
            else []
        )
    except (InvalidRequirement, InvalidSpecifier, TypeError, *_READ_ERRORS) as error:
        raise _unreadable_error(file, str(error)) from None
    head = ["Metadata-Version: 2.1", f"Name: {release.package}", f"Version: {release.version}"]
    return "\n".join(
        [
            *head,
            *python,
            *(f"Provides-Extra: {canonicalize_name(extra)}" for extra in extras),
            *(f"Requires-Dist: {line}" for line in lines),
            "",
        ]
    )


def _build_requirements(release: Release, pyproject: str) -> Iterator[str]:
    """Yield the build requirements without versions, by default setuptools (PEP 517)."""
    system = tomllib.loads(pyproject).get("build-system", {})
    for line in system.get("requires", ["setuptools"]) if isinstance(system, dict) else ():
        requirement = Requirement(line)
        if canonicalize_name(requirement.name) != release.package:
            extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
            yield f"{requirement.name}{extras}" + (
                f"; {requirement.marker}" if requirement.marker else ""
            )


def _parse_requires_txt(text: str) -> Iterator[str]:
    """Yield the requirements of requires.txt: lines, and sections "[extra:marker]".

    Either part of a section's name may be missing.
    """
    condition = ""
    for line in filter(None, (line.strip() for line in text.splitlines())):
        if line.startswith("["):
            extra, _, marker = line.strip("[]").partition(":")
            both = [
                *([f"({marker})"] if marker else []),
                *([f"extra == '{extra}'"] if extra else []),
            ]
            condition = f"; {' and '.join(both)}" if both else ""
        else:
            yield line + condition


def _read_sdist(file: SourceDistribution, path: Path) -> _SdistFiles:
    try:
        texts = dict(_read_zip(path) if file.name.endswith(".zip") else _read_tar(path))
    except _READ_ERRORS as error:
        raise _unreadable_error(file, str(error)) from None
    files = _SdistFiles(
        texts.get("PKG-INFO", ""), texts.get("pyproject.toml", ""), texts.get("requires.txt", "")
    )
    if not files.metadata:
        raise _unreadable_error(
            file, "it has no PKG-INFO file, which contains the package's requirements"
        )
    return files


def _read_tar(path: Path) -> Iterator[tuple[str, str]]:
    unpacked = 0
    with tarfile.open(path, "r:gz") as archive:
        for member in archive:
            unpacked += member.size
            if unpacked > _UNPACKED_LIMIT:
                raise tarfile.TarError(
                    f"the archive unpacks to more than {_UNPACKED_LIMIT >> 30} GiB"
                )
            if (
                (name := _metadata_file_name(member.name))
                and member.isfile()
                and (content := archive.extractfile(member)) is not None
            ):
                yield name, content.read(_TEXT_LIMIT).decode("utf-8", "replace")


def _read_zip(path: Path) -> Iterator[tuple[str, str]]:
    with zipfile.ZipFile(path) as archive:
        for member in archive.namelist():
            if name := _metadata_file_name(member):
                with archive.open(member) as content:
                    yield name, content.read(_TEXT_LIMIT).decode("utf-8", "replace")


def _metadata_file_name(member: str) -> str:
    """Return the name of a member that we read, "" for others.

    PKG-INFO and pyproject.toml count at the top only.
    """
    parts = member.removeprefix("./").split("/")
    top = len(parts) == 2 and parts[1] in ("PKG-INFO", "pyproject.toml")
    return (
        parts[-1]
        if top
        or (
            len(parts) <= 4
            and parts[-2:-1]
            and parts[-2].endswith(".egg-info")
            and parts[-1] == "requires.txt"
        )
        else ""
    )


def _unreadable_error(file: SourceDistribution, why: str) -> LockError:
    return LockError(
        f"{file.name} cannot be locked as a source distribution",
        why=why,
        hint="choose a different version, preferably one with a wheel",
    )
