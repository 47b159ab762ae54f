"""The scratch project that uv reads: packages bound to indexes, hashes, and address variables."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote

from .document import DEFAULT_INDEX, InstallRequest, Pin

PROJECT_FILE, HASHES_FILE, UV_CONFIG_FILE = "pyproject.toml", "hashes.txt", "given.toml"
_USERINFO = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)(?P<user>[^/?#:]*)(:(?P<password>[^/?#]*))?@(?P<rest>.*)",
    re.DOTALL,
)


def write_project(wanted: InstallRequest, pins: Sequence[Pin], folder: Path) -> None:
    """Write the project and the hashes of some of what is wanted into a folder."""
    named = [
        (name, remove_credentials(address))
        for name, address in wanted.indexes.items()
        if name != DEFAULT_INDEX
    ]
    sources = [
        "[tool.uv.sources]",
        *(
            f"{json.dumps(pin.name)} = {{ index = {json.dumps(pin.index)} }}"
            for pin in pins
            if pin.index
        ),
    ]
    exact = [f"{pin.name}=={pin.version}" for pin in pins]
    lines = [*project_lines(f"=={wanted.python_version}.*", exact), *index_lines(named), *sources]
    (folder / PROJECT_FILE).write_text("\n".join(lines) + "\n", encoding="utf-8")
    hashes = [
        f"{pin.name}=={pin.version} " + " ".join(f"--hash=sha256:{value}" for value in pin.hashes)
        for pin in pins
    ]
    (folder / HASHES_FILE).write_text("\n".join(hashes) + "\n", encoding="utf-8")


def project_lines(requires_python: str, requirements: Sequence[str]) -> list[str]:
    """Return the head of a scratch project. JSON strings and arrays of them are valid TOML."""
    lines = [
        "[project]",
        'name = "provision-scratch"',
        'version = "0"',
        f"requires-python = {json.dumps(requires_python)}",
    ]
    return [*lines, f"dependencies = {json.dumps(list(requirements))}"]


def index_lines(indexes: Iterable[tuple[str, str]]) -> list[str]:
    """Return the tables of named indexes (name, address), each used for its own packages only."""
    tables = [
        [
            "[[tool.uv.index]]",
            f"name = {json.dumps(name)}",
            f"url = {json.dumps(address)}",
            "explicit = true",
        ]
        for name, address in indexes
    ]
    return [line for table in tables for line in table]


def build_index_variables(
    default: str, links: Sequence[str], named: Iterable[tuple[str, str]]
) -> dict[str, str]:
    """Return the addresses of packages as variables.

    They may have passwords: command lines are public, and a file would outlive a kill.
    """
    passed = {"UV_DEFAULT_INDEX": default, "UV_FIND_LINKS": ",".join(links)}
    return {
        **{key: value for key, value in passed.items() if value},
        **{key: value for name, url in named for key, value in _credentials(name, url)},
    }


def build_request_variables(wanted: InstallRequest) -> Mapping[str, str]:
    """Return the variables that say where the wanted packages come from."""
    named = [(name, address) for name, address in wanted.indexes.items() if name != DEFAULT_INDEX]
    return build_index_variables(wanted.indexes.get(DEFAULT_INDEX, ""), wanted.find_links, named)


def remove_credentials(url: str) -> str:
    """Return an address without user name and password."""
    found = _USERINFO.fullmatch(url)
    return found["scheme"] + found["rest"] if found else url


def _credentials(name: str, url: str) -> Iterator[tuple[str, str]]:
    """Yield uv's variables with the user and password of a named index.

    Their names have capital letters, digits and underscores only.
    """
    if found := _USERINFO.fullmatch(url):
        spelled = re.sub(r"[^A-Z0-9]", "_", name.upper())
        for part, value in (("USERNAME", found["user"]), ("PASSWORD", found["password"])):
            if value:
                yield f"UV_INDEX_{spelled}_{part}", unquote(value)
