"""The package sources of this machine: overrides, pip's configuration and folders of wheels."""

from __future__ import annotations

import configparser
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from packaging.requirements import Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from provision.effects.packages import IndexSource, NamedIndex, PackageSources
from provision.sanitize import redact

_SECTIONS = ("global", "install")


_PLATFORMS = {
    "linux-x86_64": ("linux", ("x86_64",)),
    "linux-aarch64": ("linux", ("aarch64",)),
    "macos-arm64": ("macosx", ("arm64", "universal2")),
    "macos-x86_64": ("macosx", ("x86_64", "universal2")),
    "windows-x86_64": ("win", ("amd64",)),
}
_TORCH_LIKE = re.compile(
    r"^(torch(vision|audio|text|data)?|triton|pytorch-triton(-.+)?|nvidia-.+|cuda-.+)$"
)


@dataclass(frozen=True, slots=True)
class PipConfig:
    """The options of pip for package sources; "" or () if not set."""

    index_url: str = ""
    extra_index_urls: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    proxy: str = ""
    cert: str = ""


def read_pip_config(
    environment: Mapping[str, str], prefixes: tuple[str, ...] = (sys.base_prefix, sys.prefix)
) -> PipConfig:
    """Return the configuration of `pip install`.

    Files come first (global, user, then site in `prefixes`), then PIP_CONFIG_FILE, then PIP_*
    variables. Later files win over earlier ones, [install] over [global], and variables over both.
    PIP_CONFIG_FILE=/dev/null (os.devnull) disables all files, and an existing file there replaces
    the user's. Unreadable files count as absent. Source: pip's documentation, "Configuration", and
    pip itself, which a test compares with.
    """
    sections: dict[str, dict[str, str]] = {name: {} for name in _SECTIONS}
    for path in _config_files(environment, prefixes):
        parser = configparser.RawConfigParser()
        with suppress(OSError, configparser.Error, UnicodeDecodeError):
            parser.read(path, encoding="utf-8")
            for name in filter(parser.has_section, _SECTIONS):
                sections[name] |= parser.items(name)
    options = {}
    for name in _SECTIONS:
        for key, value in sections[name].items():
            if value.strip():
                options[key.replace("_", "-")] = value
    for option in ("index-url", "extra-index-url", "find-links", "proxy", "cert"):
        if variable := environment.get(f"PIP_{option.upper().replace('-', '_')}"):
            options[option] = variable
    return PipConfig(
        index_url=options.get("index-url", "").strip(),
        extra_index_urls=tuple(options.get("extra-index-url", "").split()),
        find_links=tuple(options.get("find-links", "").split()),
        proxy=options.get("proxy", "").strip(),
        cert=options.get("cert", "").strip(),
    )


def home_folder(
    environment: Mapping[str, str], get_home: Callable[[], Path] = Path.home
) -> Path | None:
    """Return the caller's home folder, None for a user id without a user, as in a container."""
    try:
        return Path(environment.get("HOME") or get_home())
    except RuntimeError:
        return None


def _config_files(environment: Mapping[str, str], prefixes: tuple[str, ...]) -> list[Path]:
    chosen = environment.get("PIP_CONFIG_FILE")
    if chosen == os.devnull:
        return []
    application_support = Path("Library/Application Support/pip")
    if sys.platform == "darwin":
        files = ["/" / application_support / "pip.conf"]
    else:
        folders = (environment.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(os.pathsep)
        files = [Path(folder) / "pip/pip.conf" for folder in folders if folder]
        files.append(Path("/etc/pip.conf"))
    if not chosen or not Path(chosen).exists():
        home, config = home_folder(environment), environment.get("XDG_CONFIG_HOME")
        user = Path(config) / "pip" if config else home and home / ".config/pip"
        if home:
            files.append(home / ".pip/pip.conf")
            if sys.platform == "darwin" and (home / application_support).is_dir():
                user = home / application_support
        if user:
            files.append(user / "pip.conf")
    files += [Path(prefix) / "pip.conf" for prefix in prefixes]
    return [*files, Path(chosen)] if chosen else files


def locate_sources(
    pip: PipConfig, environment: Mapping[str, str], indexes: tuple[NamedIndex, ...], minor: str
) -> PackageSources:
    """Return the package sources.

    PROVISION_INDEX_<NAME> overrides an index. Otherwise a folder of wheels in pip's find-links
    replaces a flavoured index if it has all required wheels, and pip's index-url replaces the
    default index. pip's extra-index-url is not used: any package on it could replace ours.
    """
    first: dict[str, Path] = {}  # the same wheel may be in several folders
    for link in pip.find_links:
        folder = _find_links_folder(link, environment)
        for wheel in sorted(folder.glob("*.whl")) if folder else ():
            first.setdefault(wheel.name, wheel)
    wheels = tuple(first.values())
    named = tuple(_locate_index(index, environment, wheels, minor) for index in indexes)
    notes = (
        *_override_notes(environment, indexes),
        *_source_notes(pip, environment, named, indexes, wheels, minor),
    )
    plain = tuple(wheel for wheel in wheels if not _TORCH_LIKE.match(package_of_wheel(wheel)))
    links = tuple(link for link in pip.find_links if re.match(r"https?://", link))
    default = environment.get(index_override_variable("pypi")) or pip.index_url
    return PackageSources(IndexSource("pypi", default), named, plain, links, notes)


def link_wheels(sources: PackageSources, folder: Path) -> tuple[str, ...]:
    """Return where further wheels are; local wheels are linked into `folder`/wheels."""
    if not sources.wheels:
        return sources.find_links
    wheels = folder / "wheels"
    wheels.mkdir()
    for wheel in sources.wheels:
        (wheels / wheel.name).symlink_to(wheel.resolve())
    return (str(wheels), *sources.find_links)


def index_override_variable(index: str) -> str:
    """Return the name of the variable that overrides an index's address."""
    return "PROVISION_INDEX_" + index.upper().replace("-", "_")


def package_of_wheel(wheel: Path) -> str:
    """Return the canonical name of the package of a wheel."""
    return canonicalize_name(wheel.name.partition("-")[0])


def _locate_index(
    index: NamedIndex, environment: Mapping[str, str], wheels: tuple[Path, ...], minor: str
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
    own = "cp" + minor.replace(".", "")
    accepted = ((own, own), (own, "abi3"), (own, "none"), ("py3", "none"))  # not cp313t
    return version.local == flavour and any((tag.interpreter, tag.abi) in accepted for tag in tags)


def _satisfies_package(wheel: Path, package: str, platform: str) -> bool:
    name, version, _, tags = parse_wheel_filename(wheel.name)
    requirement = Requirement(package)
    if name != canonicalize_name(requirement.name):
        return False
    system, machines = _PLATFORMS[platform]
    return requirement.specifier.contains(version, prereleases=True) and any(
        system in tag.platform and tag.platform.endswith(machines) for tag in tags
    )


def _find_links_folder(link: str, environment: Mapping[str, str]) -> Path | None:
    path = Path(unquote(urlsplit(link).path)) if link.startswith("file:") else Path(link)
    if link.startswith("~/") and (home := home_folder(environment)):
        path = home / link[2:]
    return path if path.is_dir() else None


def _override_notes(
    environment: Mapping[str, str], indexes: tuple[NamedIndex, ...]
) -> Iterator[str]:
    labels = {"pypi": "default index"}
    for index in indexes:
        labels.setdefault(index.name, f"index {index.name}")
    for name, label in labels.items():
        variable = index_override_variable(name)
        if url := environment.get(variable):
            yield f"{label}: {redact(url)} ({variable})"


def _source_notes(
    pip: PipConfig,
    environment: Mapping[str, str],
    named: tuple[IndexSource, ...],
    indexes: tuple[NamedIndex, ...],
    wheels: tuple[Path, ...],
    minor: str,
) -> Iterator[str]:
    if pip.index_url and not environment.get(index_override_variable("pypi")):
        yield f"default index: {redact(pip.index_url)} (pip's index-url)"
    if pip.extra_index_urls:
        yield (
            "pip's extra-index-url is not used: declare its indexes under `indexes`, and "
            "assign packages to them with `index`"
        )
    for source in named:
        if source.wheels:
            count = len(source.wheels)
            wheels_text = "1 local wheel" if count == 1 else f"{count} local wheels"
            yield f"using {wheels_text} (pip's find-links) instead of the index {source.name}"
    for index, source in zip(indexes, named, strict=True):
        if index.flavour is None or source.wheels or source.url != index.url:
            continue
        flavoured = [wheel.name for wheel in wheels if f"+{index.flavour}-" in wheel.name]
        if flavoured:
            packages, platforms = ", ".join(index.packages), ", ".join(index.platforms)
            yield (
                f"querying the index {index.name}, because pip's find-links has "
                f"{', '.join(flavoured)} but not all of {packages} for Python {minor} on "
                f"{platforms}"
            )
