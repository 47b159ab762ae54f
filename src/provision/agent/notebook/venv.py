"""Creates the environment for isolation venv, with this interpreter or one from uv."""

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
    """Create the environment unless its interpreter starts and matches. Raises StageError."""
    if is_environment_usable(session):
        return
    version = session.document.python
    shutil.rmtree(session.environment, ignore_errors=True)
    if uv is not None:
        python = sys.executable if version == _MINOR else _find_python(session, uv, version)
        argv = [uv, "venv", "--quiet", "--no-project", "--python", python]
    elif version == _MINOR:
        argv = [sys.executable, "-I", "-m", "venv"]
    else:
        raise StageError(
            f"Python {version} is not installed, and uv is not available to download it",
            "",
            "install uv (pip install uv) and run the cell again",
        )
    answer = run_process([*argv, str(session.environment)], 300, _uv_variables(session))
    if answer.code:
        raise StageError(
            f"cannot create the environment {session.environment}",
            answer.output_tail,
            "free some disk space if the disk is full, then run the cell again",
        )


def is_environment_usable(session: Session) -> bool:
    """Return whether the environment's interpreter starts and has the locked version."""
    answer = run_process(
        [session.python, "-I", "-S", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
        60,
        session.environ_without_secrets,
    )
    return answer.code == 0 and answer.stdout.strip() == session.document.python


def _find_python(session: Session, uv: str, version: str) -> str:
    """Return an interpreter of a version from uv, which downloads it if necessary."""
    variables, find = _uv_variables(session), [uv, "python", "find", "--no-project"]
    answer = run_process([*find, version], 120, variables)
    if answer.code == 0:
        return answer.stdout.strip()
    session.print_line(f"Python {version} is not installed: uv downloads it (about 30 MB)")
    answer = run_process(
        [uv, "python", "install", "--quiet", version],
        _FETCH_S,
        {**variables, "UV_PYTHON_DOWNLOADS": "manual"},
        heartbeat=session.print_heartbeat,
    )
    if answer.code:
        raise StageError(
            f"Python {version} is not installed, and uv cannot download it",
            answer.output_tail,
            f"run the cell again with network access, or choose a runtime with Python {version}",
        )
    return run_process([*find, "--managed-python", version], 120, variables).stdout.strip()


def _uv_variables(session: Session) -> dict[str, str]:
    # As for pip, UV_ and PYTHON variables of the machine are not used, except uv's folders.
    variables = pip_variables({}, session.environ_without_secrets)
    for key in ("UV_CACHE_DIR", "UV_PYTHON_INSTALL_DIR", "UV_PYTHON_INSTALL_MIRROR"):
        if key in session.environ:
            variables[key] = session.environ[key]
    fixed = {"UV_NO_CONFIG": "1", "UV_PYTHON_DOWNLOADS": "never", "UV_NO_PROGRESS": "1"}
    return {**variables, **fixed}
