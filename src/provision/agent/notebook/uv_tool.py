"""Finds uv: on this machine, else the locked uv by its hash; without it, pip installs."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping

from ..core.agent_config import parse_uv_version, pip_arguments
from ..core.process import run_process
from .session import Session

MIN_UV_VERSION = (0, 9)
"""As the command line requires: earlier versions interpret projects and indexes differently."""
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


def find_uv(session: Session) -> str | None:
    """Return a uv that is new enough; None if the locked one cannot be downloaded either.

    The uv on PATH comes first, then the one next to the interpreter, then the locked wheel.
    """
    environ, uv = session.environ_without_secrets, session.document.uv
    for path in (environ.get("PATH"), os.path.dirname(sys.executable)):
        program = shutil.which("uv", path=path)
        version = _version(program, environ) if program else None
        if version and version >= MIN_UV_VERSION:
            return program
    if uv is None:
        session.print_detail(
            "installing with pip: uv is not installed, and the cell does not specify a version"
        )
        return None
    target = uv.folder(session.folder / "tools")
    program = str(target / "bin/uv")
    if _version(program, environ) is not None:
        return program
    requirements = session.folder / "uv.txt"
    requirements.write_text(uv.requirement + "\n", encoding="utf-8")
    answer = run_process(
        [sys.executable, "-I", "-m", "pip", *pip_arguments(requirements, target)],
        _FETCH_S,
        pip_variables(session.document.install, environ),
        session.folder,
    )
    if answer.code == 0 and _version(program, environ) is not None:
        session.print_detail(f"downloaded uv {uv.version}, checked against its hash")
        return program
    reason = (answer.output_tail.splitlines() or [f"pip exited with code {answer.code}"])[-1]
    session.print_detail(f"installing with pip: uv {uv.version} is not available ({reason})")
    return None


def pip_variables(install: Mapping[str, object], environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of pip: those for the network, and the addresses of the packages.

    No other setting of this machine is used. Addresses are variables, because they may contain
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
        "PIP_EXTRA_INDEX_URL": " ".join(map(str, addresses.values())),
        "PIP_FIND_LINKS": " ".join(map(str, links)) if isinstance(links, list) else "",
    }
    return {**kept, **_QUIET, **{key: value for key, value in variables.items() if value}}


def _version(program: str, environ: Mapping[str, str]) -> tuple[int, ...] | None:
    variables = {key: value for key, value in environ.items() if not _FOREIGN.match(key)}
    answer = run_process([program, "--version"], 60, variables)
    version = parse_uv_version(answer.stdout) if answer.code == 0 else None
    return tuple(map(int, version.split("."))) if version else None
