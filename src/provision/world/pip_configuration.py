"""What the machine's pip configuration says of mirrors: index, wheel folders, proxy and certificates."""

from __future__ import annotations

import configparser
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_SECTIONS = ("global", "install", "download")


@dataclass(frozen=True, slots=True)
class PipConfiguration:
    """The options of pip that say where packages come from; "" or () where nothing is set."""

    index_url: str = ""
    extra_index_urls: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    proxy: str = ""
    cert: str = ""


def read_pip_configuration(environment: Mapping[str, str]) -> PipConfiguration:
    """Read pip's configuration as pip does: global, user and site files, then PIP_CONFIG_FILE, then PIP_* variables; later ones win.

    Source: pip's documentation, "Configuration"; PIP_CONFIG_FILE=/dev/null (os.devnull) switches files off. Unreadable files count as absent, as in pip.
    """
    options: dict[str, str] = {}
    for path in _files(environment):
        options.update(_options(path))
    for name in ("index_url", "extra_index_url", "find_links", "proxy", "cert"):
        if value := environment.get(f"PIP_{name.upper()}"):
            options[name.replace("_", "-")] = value
    return PipConfiguration(
        index_url=options.get("index-url", "").strip(),
        extra_index_urls=tuple(options.get("extra-index-url", "").split()),
        find_links=tuple(options.get("find-links", "").split()),
        proxy=options.get("proxy", "").strip(),
        cert=options.get("cert", "").strip(),
    )


def _files(environment: Mapping[str, str]) -> tuple[Path, ...]:
    chosen = environment.get("PIP_CONFIG_FILE")
    if chosen == os.devnull:
        return ()
    home = Path(environment.get("HOME") or Path.home())
    user = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    if sys.platform == "darwin" and (home / "Library/Application Support/pip").is_dir():
        user = home / "Library/Application Support"
    folders = [Path(folder) for folder in reversed(environment.get("XDG_CONFIG_DIRS", "/etc/xdg").split(os.pathsep)) if folder]
    common = [folder / "pip/pip.conf" for folder in folders] + [Path("/etc/pip.conf")]
    own = [home / ".pip/pip.conf", user / "pip/pip.conf"]
    return (*common, *own, Path(sys.base_prefix) / "pip.conf", *([Path(chosen)] if chosen else []))


def _options(path: Path) -> dict[str, str]:
    parser = configparser.RawConfigParser()
    try:
        parser.read(path, encoding="utf-8")
    except (OSError, configparser.Error, UnicodeDecodeError):
        return {}
    return {key.replace("_", "-"): value for section in _SECTIONS if parser.has_section(section) for key, value in parser.items(section)}
