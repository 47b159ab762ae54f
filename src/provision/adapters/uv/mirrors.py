"""The package sources of this machine: overrides, pip's mirrors and folders of wheels."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from packaging.requirements import Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from provision.adapters.uv.pip_config import PipConfig, home_folder
from provision.effects.packages import Index, IndexSource, PackageSources
from provision.sanitize import redact

_PLATFORMS = {
    "linux-x86_64": ("linux", ("x86_64",)),
    "linux-aarch64": ("linux", ("aarch64",)),
    "macos-arm64": ("macosx", ("arm64", "universal2")),
    "windows-x86_64": ("win", ("amd64",)),
}
_TORCH_LIKE = re.compile(
    r"^(torch(vision|audio|text|data)?|triton|pytorch-triton(-.+)?|nvidia-.+|cuda-.+)$"
)


def locate_sources(
    pip: PipConfig, environment: Mapping[str, str], indexes: tuple[Index, ...], minor: str
) -> PackageSources:
    """Return the package sources.

    PROVISION_INDEX_<NAME> overrides an index. Otherwise a folder of wheels in pip's find-links
    replaces a flavoured index if it has all required wheels, and pip's index-url replaces the
    default index. pip's extra-index-url is not used: any package on it could replace ours.
    """
    folders = tuple(path for link in pip.find_links if (path := _folder(link, environment)))
    first: dict[str, Path] = {}
    for wheel in (wheel for folder in folders for wheel in sorted(folder.glob("*.whl"))):
        first.setdefault(
            wheel.name, wheel
        )  # the same wheel may lie in several folders, and a folder may be named twice
    wheels = tuple(first.values())
    named = tuple(_locate_index(index, environment, wheels, minor) for index in indexes)
    notes = (
        *_override_notes(environment, indexes),
        *_source_notes(pip, environment, named, indexes, wheels, minor),
    )
    plain = tuple(
        wheel
        for wheel in wheels
        if not _TORCH_LIKE.match(canonicalize_name(wheel.name.split("-")[0]))
    )
    links = tuple(link for link in pip.find_links if re.match(r"https?://", link))
    default = environment.get(index_override_variable("pypi")) or pip.index_url
    return PackageSources(IndexSource("pypi", default), named, plain, links, notes)


def index_override_variable(index: str) -> str:
    """Return the name of the variable that overrides an index's address."""
    return "PROVISION_INDEX_" + index.upper().replace("-", "_")


def _locate_index(
    index: Index, environment: Mapping[str, str], wheels: tuple[Path, ...], minor: str
) -> IndexSource:
    if url := environment.get(index_override_variable(index.name)):
        return IndexSource(index.name, url)
    if index.flavour is None or not index.packages:
        return IndexSource(index.name, index.url)
    fitting = tuple(wheel for wheel in wheels if _fits_interpreter(wheel, index.flavour, minor))
    covered = all(
        any(_satisfies_package(wheel, package, platform) for wheel in fitting)
        for package in index.packages
        for platform in index.platforms
    )
    return IndexSource(index.name, index.url, fitting if covered else ())


def _fits_interpreter(wheel: Path, flavour: str, minor: str) -> bool:
    try:
        _, version, _, tags = parse_wheel_filename(wheel.name)
    except InvalidWheelFilename:
        return False
    interpreter = "cp" + minor.replace(".", "")
    accepted = {
        (interpreter, interpreter),
        (interpreter, "abi3"),
        (interpreter, "none"),
        ("py3", "none"),
    }  # not cp313t: that is another interpreter's
    return version.local == flavour and any((tag.interpreter, tag.abi) in accepted for tag in tags)


def _satisfies_package(wheel: Path, package: str, platform: str) -> bool:
    name, version, _, tags = parse_wheel_filename(wheel.name)
    system, machines = _PLATFORMS[platform]
    requirement = Requirement(package)
    is_wanted = name == canonicalize_name(requirement.name) and requirement.specifier.contains(
        version, prereleases=True
    )
    return is_wanted and any(
        system in tag.platform and tag.platform.endswith(machines) for tag in tags
    )


def _folder(link: str, environment: Mapping[str, str]) -> Path | None:
    path = Path(unquote(urlsplit(link).path)) if link.startswith("file:") else Path(link)
    if link.startswith("~/") and (home := home_folder(environment)):
        path = home / link[2:]
    return path if path.is_dir() else None


def _override_notes(environment: Mapping[str, str], indexes: tuple[Index, ...]) -> Iterator[str]:
    for label, name in (
        ("default index", "pypi"),
        *((f"index {index.name}", index.name) for index in indexes),
    ):
        if url := environment.get(index_override_variable(name)):
            yield f"{label}: {redact(url)} ({index_override_variable(name)})"


def _source_notes(
    pip: PipConfig,
    environment: Mapping[str, str],
    named: tuple[IndexSource, ...],
    indexes: tuple[Index, ...],
    wheels: tuple[Path, ...],
    minor: str,
) -> Iterator[str]:
    if pip.index_url and not environment.get(index_override_variable("pypi")):
        yield f"default index: {redact(pip.index_url)} (pip's index-url)"
    if pip.extra_index_urls:
        (
            yield f"pip's extra-index-url ({len(pip.extra_index_urls)}) is not used: name such an "
            "index under `indexes:` and bind packages to it with `index:`"
        )
    for source in named:
        if source.wheels:
            (
                yield f"index {source.name}: {len(source.wheels)} local wheel(s) from pip's "
                "find-links stand in for it"
            )
    for index, source in zip(indexes, named, strict=True):
        flavoured = [
            wheel.name for wheel in wheels if index.flavour and f"+{index.flavour}-" in wheel.name
        ]
        if flavoured and not source.wheels and source.url == index.url:
            requirement = (
                f"{', '.join(index.packages)} for Python {minor} on {', '.join(index.platforms)}"
            )
            (
                yield f"index {index.name} itself is asked: pip's find-links hold "
                f"{', '.join(flavoured)}, "
                f"but not all of {requirement}"
            )
