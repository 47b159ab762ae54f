"""The environment for isolation venv: the running interpreter if it fits, else one of uv's."""

from __future__ import annotations

import shutil
import sys

from ..core.process import run_process
from .errors import StageError
from .session import Session
from .uv_tool import pip_variables

_FETCH_S = 900.0
_MINOR = f"{sys.version_info.major}.{sys.version_info.minor}"


def make_environment(session: Session, uv: str | None) -> None:
    """Make the environment unless its interpreter starts and fits. Raises StageError."""
    wanted = session.document.python
    if is_environment_usable(session):
        return
    shutil.rmtree(session.environment, ignore_errors=True)
    if uv is None:
        if wanted != _MINOR:
            raise StageError(
                f"no Python {wanted} here, and no uv that could fetch one",
                "",
                "install uv (pip install uv) and run the cell again",
            )
        _must(
            session,
            [sys.executable, "-I", "-m", "venv", str(session.environment)],
            "cannot make the environment",
        )
        return
    python = sys.executable if wanted == _MINOR else _interpreter(session, uv, wanted)
    _must(
        session,
        [uv, "venv", "--quiet", "--no-project", "--python", python, str(session.environment)],
        "cannot make the environment",
    )


def is_environment_usable(session: Session) -> bool:
    """Return whether the environment's interpreter starts and fits."""
    answer = run_process(
        [session.python, "-I", "-S", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
        60,
        session.environ_without_secrets,
    )
    return answer.code == 0 and answer.stdout.strip() == session.document.python


def _interpreter(session: Session, uv: str, wanted: str) -> str:
    """Return an interpreter of that version from uv, which fetches it if need be."""
    variables = _variables(session)
    found = run_process([uv, "python", "find", "--no-project", wanted], 120, variables)
    if found.code == 0:
        return found.stdout.strip()
    session.print_line(f"no Python {wanted} on this machine: uv fetches one (about 30 MB)")
    answer = run_process(
        [uv, "python", "install", "--quiet", wanted],
        _FETCH_S,
        {**variables, "UV_PYTHON_DOWNLOADS": "manual"},
        heartbeat=session.print_heartbeat,
    )
    if answer.code:
        hint = (
            "run the cell again when the network is there, or choose a runtime with Python "
            f"{wanted}"
        )
        raise StageError(
            f"no Python {wanted} here, and uv cannot fetch one", answer.output_tail, hint
        )
    return run_process(
        [uv, "python", "find", "--no-project", "--managed-python", wanted], 120, variables
    ).stdout.strip()


def _must(session: Session, words: list[str], what: str) -> None:
    answer = run_process(words, 300, _variables(session))
    if answer.code:
        raise StageError(
            f"{what} {session.environment}",
            answer.output_tail,
            "look whether the disk is full, then run the cell again",
        )


def _variables(session: Session) -> dict[str, str]:
    # As for pip: what lies about on the machine in UV_ and PYTHON variables decides nothing. Where
    # uv keeps its Pythons does not matter for what is made.
    kept = {
        key: value
        for key, value in session.environ.items()
        if key in ("UV_CACHE_DIR", "UV_PYTHON_INSTALL_DIR", "UV_PYTHON_INSTALL_MIRROR")
    }
    return {
        **pip_variables({}, session.environ_without_secrets),
        **kept,
        "UV_NO_CONFIG": "1",
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_NO_PROGRESS": "1",
    }
