"""Lock integrity: contradictions in a lock's own content, without its spec or a network."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

from packaging.utils import canonicalize_name
from packaging.version import Version

from provision.effects.conda import CONDA_SUBDIRS, CondaRecord
from provision.facts.versions import parse_version
from provision.lock.conda_package import LockedCondaPackage
from provision.lock.model import (
    Lock,
    LockedEnvironment,
    LockedPackage,
    environment_digest,
)
from provision.lock.origins import find_code_flaws, find_origin_flaws
from provision.lock.wheels import (
    PLATFORMS,
    oldest_glibc,
    parse_file_name,
    wheel_runs_on,
    with_platform_files,
)

PACKAGE_NAME_PATTERN = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
FLAVOUR_PATTERN = re.compile(r"cpu|cu\d{3,4}")
_HEXADECIMAL = re.compile(r"[0-9a-f]{64}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_PYTHON = re.compile(r"3\.[0-9]{1,2}")
_NUMBERS = re.compile(r"[0-9]+(\.[0-9]+)*")
_CONDA_NAME = re.compile(r"[a-z0-9_][a-z0-9_.-]*")
_CONDA_PART = re.compile(r"[A-Za-z0-9_.!+]+")
_MD5 = re.compile(r"([0-9a-f]{32})?")
_Row = TypeVar("_Row", LockedPackage, CondaRecord)


class Flaw(NamedTuple):
    """A part of a lock that `provision lock` would not have written, and what is wrong with it.

    `line` is the text that its line begins with.
    """

    part: str
    what: str
    line: str = ""


def flaw_in_package(package: LockedPackage, what: str) -> Flaw:
    """Return a flaw of one package of the index."""
    return Flaw(
        f"package {package.name} {package.version}",
        what,
        f'{{"name": "{package.name}", "version": "{package.version}", "index": "{package.index}"',
    )


def flaw_in_conda(package: LockedCondaPackage, what: str) -> Flaw:
    """Return a flaw of one conda package."""
    record = package.record
    return Flaw(
        f"conda package {record.name} {record.version}",
        what,
        f'{{"name": "{record.name}", "version": "{record.version}", "build"',
    )


def flaw_in_environment(environment: LockedEnvironment, what: str) -> Flaw:
    """Return a flaw of one environment."""
    return Flaw(f"environment {environment.key}", what, f'"{environment.key}": {{"platform"')


def find_lock_flaws(lock: Lock) -> tuple[Flaw, ...]:
    """Return the flaws of names, versions, hashes, file names, platforms and digests."""
    flaws = [*_head_flaws(lock)]
    for environment in lock.environments:
        flaws += _environment_flaws(environment)
    if not flaws:
        keys = {environment.key: environment for environment in lock.environments}
        for package in lock.packages:
            flaws += _package_flaws(package, lock, keys)
        for conda in lock.conda:
            flaws += _conda_flaws(conda, keys)
    if not flaws:  # a digest of invalid values shows nothing more
        for environment in lock.environments:
            flaws += _content_flaws(environment, lock)
    return tuple(flaws)


def _head_flaws(lock: Lock) -> Iterator[Flaw]:
    if not _PYTHON.fullmatch(lock.python):
        yield Flaw("python", f"{lock.python!r} is not a Python version such as 3.12", '"python"')
    if lock.text_digest and not _DIGEST.fullmatch(lock.text_digest):
        yield Flaw("written", "not a sha256 digest", '"written"')
    if lock.code is not None:
        yield from (Flaw("code", what, '"code"') for what in find_code_flaws(lock.code))
    keys = {environment.key for environment in lock.environments}
    for name, choice in lock.targets.items():
        for key in choice.environments:
            if key not in keys:
                yield Flaw(
                    f"target `{name}`",
                    f"the lock has no environment {key}",
                    f'"{name}": {{"environments"',
                )


def _environment_flaws(environment: LockedEnvironment) -> Iterator[Flaw]:
    if environment.platform not in PLATFORMS:
        yield flaw_in_environment(environment, f"unknown platform {environment.platform!r}")
        return
    if environment.flavour is not None and not FLAVOUR_PATTERN.fullmatch(environment.flavour):
        yield flaw_in_environment(
            environment, f"{environment.flavour!r} is not a torch build such as cpu or cu128"
        )
    base = "-".join(part for part in (environment.platform, environment.flavour) if part)
    if not re.fullmatch(re.escape(base) + r"((-cu\d{3,4})?-conda)?", environment.key):
        yield flaw_in_environment(
            environment, f"its key does not match its platform and torch build, {base}"
        )
    for name, value in (("glibc", environment.glibc), ("driver", environment.driver)):
        if value is not None and not _NUMBERS.fullmatch(value):
            yield flaw_in_environment(environment, f"{name} {value!r} is not a version")
    if not _DIGEST.fullmatch(environment.digest):
        yield flaw_in_environment(environment, "its digest is not a sha256 digest")


def _package_flaws(
    package: LockedPackage, lock: Lock, keys: dict[str, LockedEnvironment]
) -> Iterator[Flaw]:
    if (
        not PACKAGE_NAME_PATTERN.fullmatch(package.name)
        or canonicalize_name(package.name) != package.name
    ):
        yield flaw_in_package(
            package, f"{package.name!r} is not a canonical package name (PEP 503)"
        )
        return
    version = parse_version(package.version)
    if version is None or not re.fullmatch(r"[!-~]+", package.version):
        yield flaw_in_package(package, f"{package.version!r} is not a version (PEP 440)")
        return
    if package.origin is not None:
        yield from (flaw_in_package(package, what) for what in find_origin_flaws(package.origin))
        if package.index:
            yield flaw_in_package(package, "it has both a source and an index")
    elif package.index != "pypi" and package.index not in lock.indexes:
        yield flaw_in_package(package, f"the lock has no index {package.index!r}")
    yield from (
        flaw_in_package(package, f"requires {name!r}, which is not a canonical package name")
        for name in package.requires
        if not PACKAGE_NAME_PATTERN.fullmatch(name)
    )
    unknown = [key for key in package.environments if key not in keys]
    if (
        unknown
        or len({*package.environments}) != len(package.environments)
        or not package.environments
    ):
        problem = "its environments are missing or repeated"
        if unknown:
            problem = f"the lock has no environment {unknown[0]}"
        yield flaw_in_package(package, problem)
        return
    yield from (
        flaw_in_package(package, what)
        for what in _file_problems(
            package, version, lock.python, tuple(keys[key] for key in package.environments)
        )
    )


def _file_problems(
    package: LockedPackage,
    version: Version,
    python: str,
    environments: tuple[LockedEnvironment, ...],
) -> Iterator[str]:
    platforms = tuple(dict.fromkeys(environment.platform for environment in environments))
    for file in package.files:
        if not _HEXADECIMAL.fullmatch(file.sha256):
            yield f"the hash of {file.name} is not a sha256: 64 hexadecimal digits"
        named = parse_file_name(file.name)
        if named is None:
            yield f"{file.name!r} is not the file name of a wheel or of a source distribution"
        elif named != (package.name, version):
            yield f"{file.name} is a file for {named[0]} {named[1]}"
        elif file.name.endswith(".whl") and not any(
            wheel_runs_on(file.name, python, platform) for platform in platforms
        ):
            yield f"{file.name} does not run on {', '.join(platforms)} with Python {python}"
    if package.built:
        if len(package.files) != 1:
            yield (
                "a package that is built from source must have exactly one file, its source "
                "distribution"
            )
        return
    if package.origin is not None and not package.files and not package.origin.is_wheel:
        return
    for platform in platforms:
        if not any(wheel_runs_on(file.name, python, platform) for file in package.files):
            yield f"it has no wheel for Python {python} on {platform}"


def _conda_flaws(package: LockedCondaPackage, keys: dict[str, LockedEnvironment]) -> Iterator[Flaw]:
    record = package.record
    if (
        not _CONDA_NAME.fullmatch(record.name)
        or not _CONDA_PART.fullmatch(record.version)
        or not _CONDA_PART.fullmatch(record.build)
    ):
        yield flaw_in_conda(package, "not a valid name, version and build of a conda package")
        return
    if record.file not in (f"{record.stem}.conda", f"{record.stem}.tar.bz2"):
        yield flaw_in_conda(package, f"{record.file!r} is not a file for {record.stem}")
    if not _HEXADECIMAL.fullmatch(record.sha256) or not _MD5.fullmatch(record.md5):
        yield flaw_in_conda(
            package, f"the hash of {record.file} is not a sha256: 64 hexadecimal digits"
        )
    if not package.environments:
        yield flaw_in_conda(package, "it is not in any environment")
    for key in package.environments:
        if key not in keys or not key.endswith("-conda"):
            yield flaw_in_conda(package, f"the lock has no conda environment {key}")
        elif record.subdir not in ("noarch", CONDA_SUBDIRS[keys[key].platform]):
            yield flaw_in_conda(
                package, f"files for {record.subdir!r} do not run on {keys[key].platform}"
            )


def _find_repeated(rows: Sequence[_Row]) -> list[_Row]:
    """Return the rows whose name an earlier row has."""
    first = {row.name: row for row in reversed(rows)}
    return [row for row in rows if first[row.name] is not row]


def _content_flaws(environment: LockedEnvironment, lock: Lock) -> Iterator[Flaw]:
    packages, records = lock.packages_in(environment), lock.conda_records_in(environment)
    for package in _find_repeated(packages):
        yield flaw_in_package(
            package, f"{environment.key} has a different version of {package.name}"
        )
    for record in _find_repeated(records):
        yield flaw_in_environment(
            environment, f"it has the conda package {record.name} more than once"
        )
    content = tuple(
        with_platform_files(package, lock.python, environment.platform) for package in packages
    )
    platform, flavour = environment.platform, environment.flavour
    digest = environment_digest(lock.python, platform, flavour, content, records)
    if digest != environment.digest:
        yield flaw_in_environment(
            environment, "its digest does not match its packages, their files and their hashes"
        )
    if not environment.key.endswith("-conda"):
        floors = (oldest_glibc(package, lock.python, platform) for package in packages)
        floor = max((floor for floor in floors if floor), default=())
        glibc = ".".join(map(str, floor)) or None
        if environment.glibc != glibc:
            yield flaw_in_environment(
                environment,
                f"its wheels need glibc {glibc or 'of any version'}, but the lock has "
                f"{environment.glibc or 'none'}",
            )
