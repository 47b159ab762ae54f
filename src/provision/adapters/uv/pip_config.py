"""The mirrors in the machine's pip configuration."""

from __future__ import annotations

import configparser
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

_SECTIONS = ("global", "install")


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
    for path in _files(environment, prefixes):
        for name, options in _options(path).items():
            sections[name] |= options
    options = {
        key: value for name in _SECTIONS for key, value in sections[name].items() if value.strip()
    }
    for name in ("index_url", "extra_index_url", "find_links", "proxy", "cert"):
        if value := environment.get(f"PIP_{name.upper()}"):
            options[name.replace("_", "-")] = value
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


def _files(environment: Mapping[str, str], prefixes: tuple[str, ...]) -> tuple[Path, ...]:
    chosen = environment.get("PIP_CONFIG_FILE")
    if chosen == os.devnull:
        return ()
    user_files = [] if chosen and Path(chosen).exists() else _user_files(environment)
    site = [Path(prefix) / "pip.conf" for prefix in prefixes]
    return (*_global_files(environment), *user_files, *site, *([Path(chosen)] if chosen else []))


def _user_files(environment: Mapping[str, str]) -> list[Path]:
    home, chosen = home_folder(environment), environment.get("XDG_CONFIG_HOME")
    user = Path(chosen) if chosen else home and home / ".config"
    if home and sys.platform == "darwin" and (home / "Library/Application Support/pip").is_dir():
        user = home / "Library/Application Support"
    return [*([home / ".pip/pip.conf"] if home else []), *([user / "pip/pip.conf"] if user else [])]


def _global_files(environment: Mapping[str, str]) -> list[Path]:
    if sys.platform == "darwin":
        return [Path("/Library/Application Support/pip/pip.conf")]
    folders = (environment.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(os.pathsep)
    return [*(Path(folder) / "pip/pip.conf" for folder in folders if folder), Path("/etc/pip.conf")]


def _options(path: Path) -> dict[str, dict[str, str]]:
    parser = configparser.RawConfigParser()
    try:
        parser.read(path, encoding="utf-8")
    except (OSError, configparser.Error, UnicodeDecodeError):
        return {}
    return {
        name: {key.replace("_", "-"): value for key, value in parser.items(name)}
        for name in _SECTIONS
        if parser.has_section(name)
    }
