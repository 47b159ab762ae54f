"""The installing program: uv of this machine, else the locked uv by its hash, else pip."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from ..core.process import run_process
from ..core.uv_tool import LockedUv, parse_uv_version, pip_arguments
from .document import NotebookDocument

MIN_UV_VERSION = (0, 9)
"""The same as the command line requires: earlier versions read projects and indexes otherwise."""
_FETCH_S = 600.0
_FOREIGN = re.compile(r"(PIP_|UV_|PYTHON)|(VIRTUAL_ENV|CONDA_PREFIX|__PYVENV_LAUNCHER__)$")
_KEPT = re.compile(
    r"PIP_(CERT|CLIENT_CERT|PROXY|TIMEOUT|DEFAULT_TIMEOUT|RETRIES|CACHE_DIR|TRUSTED_HOST)"
)

_QUIET = {
    "PIP_CONFIG_FILE": os.devnull,
    "PIP_NO_INPUT": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_PROGRESS_BAR": "off",
    "PIP_ROOT_USER_ACTION": "ignore",
}


def find_uv(
    document: NotebookDocument,
    folder: Path,
    python: str,
    environ: Mapping[str, str],
    print_detail: Callable[[str], None],
) -> str | None:
    """Return a uv that is new enough; None if there is none and the locked one cannot be fetched.

    The uv of the PATH comes first, then the one next to the interpreter, then the locked wheel.
    """
    for path in (environ.get("PATH"), os.path.dirname(python)):
        program = shutil.which("uv", path=path)
        version = _version(program, environ) if program else None
        if version and version >= MIN_UV_VERSION:
            return program
    if document.uv is None:
        print_detail("there is no uv here, and the cell names none: pip installs")
        return None
    return _fetch(document.uv, document, folder, python, environ, print_detail)


def pip_variables(install: Mapping[str, object], environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of pip: those for the network, and the addresses of the packages.

    No other setting of this machine counts. Addresses are variables, because they may hold
    passwords and command lines are public.
    """
    kept = {
        key: value
        for key, value in environ.items()
        if not _FOREIGN.match(key) or _KEPT.fullmatch(key)
    }
    indexes, links = install.get("indexes"), install.get("links")
    addresses = dict(indexes) if isinstance(indexes, dict) else {}
    variables = {
        "PIP_INDEX_URL": addresses.pop("pypi", ""),
        "PIP_EXTRA_INDEX_URL": " ".join(addresses.values()),
        "PIP_FIND_LINKS": " ".join(links) if isinstance(links, list) else "",
    }
    return {**kept, **_QUIET, **{key: value for key, value in variables.items() if value}}


def _fetch(
    uv: LockedUv,
    document: NotebookDocument,
    folder: Path,
    python: str,
    environ: Mapping[str, str],
    print_detail: Callable[[str], None],
) -> str | None:
    target = uv.folder(folder / "tools")
    program = str(target / "bin/uv")
    if _version(program, environ) is not None:
        return program
    requirements = folder / "uv.txt"
    requirements.write_text(uv.requirement + "\n", encoding="utf-8")
    answer = run_process(
        [python, "-I", "-m", "pip", *pip_arguments(requirements, target)],
        _FETCH_S,
        pip_variables(document.install, environ),
        folder,
    )
    if answer.code == 0 and _version(program, environ) is not None:
        print_detail(f"uv {uv.version} was fetched, its hash checked")
        return program
    reason = (answer.output_tail.splitlines() or [f"pip ended with {answer.code}"])[-1]
    print_detail(f"uv {uv.version} cannot be had ({reason}): pip installs")
    return None


def _version(program: str, environ: Mapping[str, str]) -> tuple[int, ...] | None:
    variables = {key: value for key, value in environ.items() if not _FOREIGN.match(key)}
    answer = run_process([program, "--version"], 60, variables)
    version = parse_uv_version(answer.stdout) if answer.code == 0 else None
    return tuple(map(int, version.split("."))) if version else None
