"""The command that adds an extra to the running copy, by how it was installed."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from collections.abc import Mapping
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

DISTRIBUTION_NAME = "provision-ml"
"""The name of our distribution. On a public index it may be another project's, so no command takes
it from one.
"""
_EXTRA_REQUIREMENT = re.compile(
    r"""(?P<requirement>[^;]+);\s*extra\s*==\s*["'](?P<extra>[\w-]+)["']"""
)
"""A line of Requires-Dist as the build of this project writes it for an extra."""
_UV_CACHE = re.compile(r"archive-v\d+")
"""The folder of uv's cache that the environments of `uvx` are in."""


class InstallSource(NamedTuple):
    """The origin of an installed copy: a folder or file, or another URL (PEP 508)."""

    path: Path | None
    url: str
    editable: bool

    def to_requirement(self, extras: str) -> str:
        """Return the requirement for this source with some extras ("conda,workbench")."""
        if self.path is not None and self.path.is_dir():
            return f"{self.path}[{extras}]"
        return f"{DISTRIBUTION_NAME}[{extras}] @ {self.url}"


def install_command(extra: str) -> str:
    """Return the shell command that adds an extra to the running copy.

    PEP 610 (direct_url.json) has the origin of the copy; PEP 376 (INSTALLER) and the environment's
    files show the installer. A copy from an index, or whose origin is gone, gets the packages of
    the extra.
    """
    prefix, installed = Path(sys.prefix), _distribution(DISTRIBUTION_NAME)
    source, installer = _source_of(installed), ""
    if installed is not None:
        installer = (installed.read_text("INSTALLER") or "").strip()
    is_pipx = (prefix / "pipx_metadata.json").exists()
    if source is None or installed is None:
        packages = _requirements_of(installed, extra) if installed is not None else []
        if not packages:
            return f"install the extra {extra} of this copy of provision for {sys.executable}"
        command = ["pipx", "inject", prefix.name] if is_pipx else _pip_install_command(installer)
        return shlex.join([*command, *packages])
    editable = ["--editable"] if source.editable else []
    all_extras = source.to_requirement(_with_present(installed, extra))
    if (receipt := prefix / "uv-receipt.toml").exists():
        command = ["uv", "tool", "install", *editable, all_extras, *_with_options(receipt)]
    elif is_pipx:
        command = ["pipx", "install", "--force", *editable, all_extras]
    elif any(_UV_CACHE.fullmatch(part) for part in prefix.parts):
        command = ["uvx", "--from", all_extras, "provision"]
    else:
        command = [*_pip_install_command(installer), *editable, source.to_requirement(extra)]
    return shlex.join(command)


def _with_options(receipt: Path) -> list[str]:
    """Return the options for packages that were added to a uv tool's environment with --with."""
    import tomllib

    try:
        rows = tomllib.loads(receipt.read_text())["tool"]["requirements"]
        options = [
            f"{row['name']}{row.get('specifier', '')}"
            for row in rows
            if row["name"] != DISTRIBUTION_NAME and row.keys() <= {"name", "specifier"}
        ]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return [argument for requirement in options for argument in ("--with", requirement)]


def _pip_install_command(installer: str) -> list[str]:
    """Return the install command of an interpreter: its own pip, else our uv."""
    if installer != "uv" and find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", "install"]
    uv = ["uv"] if shutil.which("uv") else [sys.executable, "-m", "uv"]
    return [*uv, "pip", "install", "--python", sys.executable]


def _distribution(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def _source_of(installed: Distribution | None) -> InstallSource | None:
    """Return the origin of a copy, None for an index or a path that is gone."""
    if installed is None:  # run from its sources, without an installation
        checkout = Path(__file__).parents[2]
        is_checkout = (checkout / "pyproject.toml").exists()
        return InstallSource(checkout, "", editable=True) if is_checkout else None
    try:
        document = json.loads(installed.read_text("direct_url.json") or "null")
        return _parse_source(document) if document is not None else None
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _parse_source(document: Mapping[str, Any]) -> InstallSource | None:
    url, part = document["url"], ""
    if document.get("subdirectory"):
        part = f"#subdirectory={document['subdirectory']}"
    if "vcs_info" in document:
        vcs = document["vcs_info"]
        # pip 26 accepts no requirement at git+file: without a host.
        url = url.replace("file:///", "file://localhost/", 1)
        return InstallSource(None, f"{vcs['vcs']}+{url}@{vcs['commit_id']}{part}", editable=False)
    path = Path(unquote(urlsplit(url).path)) if url.startswith("file:") else None
    if path is not None and not path.exists():
        return None
    editable = bool(document.get("dir_info", {}).get("editable"))
    return InstallSource(path, f"{url}{part}", editable)


def _requirements_of(installed: Distribution, extra: str) -> list[str]:
    matches = (_EXTRA_REQUIREMENT.fullmatch(line) for line in installed.requires or ())
    return [match["requirement"].strip() for match in matches if match and match["extra"] == extra]


def _with_present(installed: Distribution, extra: str) -> str:
    """Return an extra together with those already installed: tools recreate their environment."""
    extras = {extra}
    for name in installed.metadata.get_all("Provides-Extra") or []:
        packages = (re.split(r"[^\w.-]", line)[0] for line in _requirements_of(installed, name))
        if all(map(_distribution, packages)):
            extras.add(name)
    return ",".join(sorted(extras))
