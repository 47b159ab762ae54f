"""The programs that install: a uv of this machine, else the locked one by its hash, else pip; and
the variables that they are started with.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from .document import Document, LockedUv
from .process import run_process

MIN_UV_VERSION = (0, 9)
"""As the tool that wrote the cell asks for: earlier ones read a project and its indexes otherwise."""  # noqa: E501
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
    document: Document,
    folder: Path,
    python: str,
    environ: Mapping[str, str],
    say: Callable[[str], None],
) -> str | None:
    """Return a uv that is new enough: that of the PATH, that beside the interpreter, else the
    locked wheel by its hash. None where none can be had.
    """
    for found in (
        shutil.which("uv", path=environ.get("PATH")),
        shutil.which("uv", path=os.path.dirname(python)),
    ):
        if found and (version := _version(found, environ)) and version >= MIN_UV_VERSION:
            return found
    if document.uv is None:
        say("there is no uv here, and the cell names none: pip installs")
        return None
    return _fetch(document, document.uv, folder, python, environ, say)


def pip_variables(install: Mapping[str, object], environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment for pip: no setting that lies about on this machine, but how it reaches
    the network, and where the packages are.

    Addresses may hold passwords, so they are variables: command lines are public.
    """
    kept = {
        key: value
        for key, value in environ.items()
        if not _FOREIGN.match(key) or _KEPT.fullmatch(key)
    }
    indexes, links = install.get("indexes"), install.get("links")
    addresses = (
        {str(name): str(address) for name, address in indexes.items()}
        if isinstance(indexes, dict)
        else {}
    )
    given = {
        "PIP_INDEX_URL": addresses.pop("pypi", ""),
        "PIP_EXTRA_INDEX_URL": " ".join(addresses.values()),
        "PIP_FIND_LINKS": " ".join(map(str, links)) if isinstance(links, list) else "",
    }
    return {**kept, **_QUIET, **{key: value for key, value in given.items() if value}}


def _fetch(
    document: Document,
    uv: LockedUv,
    folder: Path,
    python: str,
    environ: Mapping[str, str],
    say: Callable[[str], None],
) -> str | None:
    tools = folder / "tools" / f"uv-{uv.version}"
    program = str(tools / "bin/uv")
    if _version(program, environ) is not None:
        return program
    wanted = folder / "uv.txt"
    wanted.write_text(
        f"uv=={uv.version} " + " ".join(f"--hash=sha256:{one}" for one in uv.hashes) + "\n",
        encoding="utf-8",
    )
    words = [
        "install",
        "--quiet",
        "--no-deps",
        "--only-binary=:all:",
        "--require-hashes",
        "--upgrade",
        "--target",
        str(tools),
        "--requirement",
        str(wanted),
    ]
    answer = run_process(
        [python, "-I", "-m", "pip", *words],
        _FETCH_S,
        pip_variables(document.install, environ),
        folder,
    )
    if answer.code == 0 and _version(program, environ) is not None:
        say(f"uv {uv.version} was fetched, its hash checked")
        return program
    why = (answer.output_tail.splitlines() or [f"pip ended with {answer.code}"])[-1]
    say(f"uv {uv.version} cannot be had ({why}): pip installs")
    return None


def _version(program: str, environ: Mapping[str, str]) -> tuple[int, ...] | None:
    answer = run_process(
        [program, "--version"],
        60,
        {key: value for key, value in environ.items() if not _FOREIGN.match(key)},
    )
    found = re.match(r"uv (\d+(?:\.\d+)*)", answer.stdout)
    return tuple(map(int, found[1].split("."))) if answer.code == 0 and found else None
