"""Inputs of uv: a scratch project with packages bound to indexes, hashes, and variables.

No other setting of the machine affects what is installed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

from ..core.installed_packages import find_installed_packages
from ..core.own_wheels import OWN_INDEX, WheelArchiveError, find_outdated_packages, write_index
from .document import DEFAULT_INDEX, InstallError, InstallRequest, PackageToInstall

PROJECT_FILE, HASHES_FILE, UV_CONFIG_FILE = "pyproject.toml", "hashes.txt", "given.toml"
BUILD_FILE = "build.txt"
_USERINFO = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)(?P<user>[^/?#:]*)(:(?P<password>[^/?#]*))?@(?P<rest>.*)",
    re.DOTALL,
)
_KEPT = re.compile(
    r"UV_(CACHE_DIR|LINK_MODE|OFFLINE|NATIVE_TLS|SYSTEM_CERTS|HTTP_TIMEOUT|HTTP_RETRIES|HTTP_CONNECT_TIMEOUT|CONCURRENT_\w+|KEYRING_PROVIDER"
    r"|INDEX_\w+_(USERNAME|PASSWORD)|PYTHON_INSTALL_DIR|PYTHON_INSTALL_MIRROR|MANAGED_PYTHON|NO_MANAGED_PYTHON)"
)
_FOREIGN = re.compile(
    r"(UV_|PIP_)|(VIRTUAL_ENV|CONDA_PREFIX|PYTHONPATH|PYTHONHOME|PYTHONDONTWRITEBYTECODE|__PYVENV_LAUNCHER__)$"
)
_DEFAULTS = {"UV_HTTP_RETRIES": "2", "UV_HTTP_CONNECT_TIMEOUT": "10"}
_FIXED = {
    "UV_NO_CONFIG": "1",
    "UV_PYTHON_DOWNLOADS": "never",
    "UV_NO_PROGRESS": "1",
    "NO_COLOR": "1",
}


def scrub_environment(
    environment: Mapping[str, str], proxy: str = "", cert: str = ""
) -> dict[str, str]:
    """Return an environment without foreign UV_* and PIP_*; cache, network and credentials stay.

    `proxy` and `cert` (pip's) count if the environment has none. No configuration file is read,
    and no Python is downloaded.
    """
    kept = {
        key: value
        for key, value in environment.items()
        if not _FOREIGN.match(key) or (value and _KEPT.fullmatch(key))
    }
    defaults = dict(_DEFAULTS)
    for name in ("HTTP_PROXY", "HTTPS_PROXY"):
        if proxy and name.lower() not in kept:
            defaults[name] = proxy
    if cert:
        defaults["SSL_CERT_FILE"] = cert
    return {**defaults, **kept, **_FIXED}


def with_own_wheels(
    request: InstallRequest, package_folders: Iterable[str], index: Path
) -> InstallRequest:
    """Return a request with the index of the project's own wheels, written into a new folder.

    Packages whose files are not those of their wheel are installed again. Raises InstallError.
    """
    archive, installed = Path(request.wheels), find_installed_packages(package_folders)
    try:
        write_index(archive, index)
        outdated = find_outdated_packages(archive, installed)
    except (WheelArchiveError, OSError) as error:
        raise InstallError("cannot use the project's wheel archive", str(error)) from None
    indexes = {**request.indexes, OWN_INDEX: index.as_uri()}
    return replace(request, indexes=indexes, reinstall=request.reinstall.union(outdated))


def write_project(
    request: InstallRequest, packages: Sequence[PackageToInstall], folder: Path
) -> None:
    """Write the project and the hashes of some of the requested packages into a folder."""
    requirements = [f"{package.name}=={package.version}" for package in packages]
    named = [(name, remove_credentials(address)) for name, address in _named_indexes(request)]
    lines = [
        *project_lines(f"=={request.python_version}.*", requirements),
        *index_lines(named),
        "[tool.uv.sources]",
        *(
            f"{json.dumps(package.name)} = {{ index = {json.dumps(package.index)} }}"
            for package in packages
            if package.index
        ),
    ]
    (folder / PROJECT_FILE).write_text("\n".join(lines) + "\n", encoding="utf-8")
    hashes = [
        f"{requirement} {' '.join(f'--hash=sha256:{value}' for value in package.hashes)}\n"
        for requirement, package in zip(requirements, packages, strict=True)
    ]
    (folder / HASHES_FILE).write_text("".join(hashes) or "\n", encoding="utf-8")


def project_lines(requires_python: str, requirements: Sequence[str]) -> list[str]:
    """Return the head of a scratch project. JSON strings and arrays of them are valid TOML."""
    return [
        "[project]",
        'name = "provision-scratch"',
        'version = "0"',
        f"requires-python = {json.dumps(requires_python)}",
        f"dependencies = {json.dumps(list(requirements))}",
    ]


def index_lines(indexes: Iterable[tuple[str, str]]) -> list[str]:
    """Return the tables of named indexes (name, address), each used for its own packages only."""
    lines = []
    for name, address in indexes:
        lines += [
            "[[tool.uv.index]]",
            f"name = {json.dumps(name)}",
            f"url = {json.dumps(address)}",
            "explicit = true",
        ]
    return lines


def build_index_variables(
    default: str, links: Sequence[str], named: Iterable[tuple[str, str]]
) -> dict[str, str]:
    """Return the addresses of packages as variables.

    They may contain passwords: command lines are public, and a file would remain after a kill.
    """
    passed = {"UV_DEFAULT_INDEX": default, "UV_FIND_LINKS": ",".join(links)}
    return {
        **{key: value for key, value in passed.items() if value},
        **{key: value for name, url in named for key, value in _credentials(name, url)},
    }


def build_request_variables(request: InstallRequest) -> Mapping[str, str]:
    """Return the variables with the addresses of the requested packages."""
    default = request.indexes.get(DEFAULT_INDEX, "")
    return build_index_variables(default, request.find_links, _named_indexes(request))


def _named_indexes(request: InstallRequest) -> list[tuple[str, str]]:
    return [item for item in request.indexes.items() if item[0] != DEFAULT_INDEX]


def remove_credentials(url: str) -> str:
    """Return an address without user name and password."""
    match = _USERINFO.fullmatch(url)
    return match["scheme"] + match["rest"] if match else url


def _credentials(name: str, url: str) -> Iterator[tuple[str, str]]:
    """Yield uv's variables with the user and password of a named index.

    Their names have capital letters, digits and underscores only.
    """
    if match := _USERINFO.fullmatch(url):
        index = re.sub(r"[^A-Z0-9]", "_", name.upper())
        for part, value in (("USERNAME", match["user"]), ("PASSWORD", match["password"])):
            if value:
                yield f"UV_INDEX_{index}_{part}", unquote(value)
