"""The environment of its own, for isolation venv: the running interpreter where it fits, else one that uv has or fetches."""

from __future__ import annotations

import shutil
import sys

from .course import Course
from .programs import ask
from .stopped import Stopped
from .tools import pip_variables

_FETCH_S = 900.0
_MINOR = f"{sys.version_info.major}.{sys.version_info.minor}"


def make_environment(course: Course, uv: str | None) -> None:
    """Make the environment where there is none whose interpreter starts and fits. Raises Stopped."""
    wanted = course.document.python
    if starts(course):
        return
    shutil.rmtree(course.environment, ignore_errors=True)
    if uv is None:
        if wanted != _MINOR:
            raise Stopped(f"no Python {wanted} here, and no uv that could fetch one", "", "install uv (pip install uv) and run the cell again")
        _must(course, [sys.executable, "-I", "-m", "venv", str(course.environment)], "cannot make the environment")
        return
    python = sys.executable if wanted == _MINOR else _interpreter(course, uv, wanted)
    _must(course, [uv, "venv", "--quiet", "--no-project", "--python", python, str(course.environment)], "cannot make the environment")


def starts(course: Course) -> bool:
    """Tell whether the environment's interpreter starts and fits."""
    answer = ask([course.python, "-I", "-S", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], 60, course.foreign)
    return answer.code == 0 and answer.stdout.strip() == course.document.python


def _interpreter(course: Course, uv: str, wanted: str) -> str:
    """Return an interpreter of that minor which uv knows; fetch one where there is none."""
    variables = _variables(course)
    found = ask([uv, "python", "find", "--no-project", wanted], 120, variables)
    if found.code == 0:
        return found.stdout.strip()
    course.tell.say("install", f"no Python {wanted} on this machine: uv fetches one (about 30 MB)")
    answer = ask([uv, "python", "install", "--quiet", wanted], _FETCH_S, {**variables, "UV_PYTHON_DOWNLOADS": "manual"}, beat=course.beat)
    if answer.code:
        hint = f"run the cell again when the network is there, or choose a runtime with Python {wanted}"
        raise Stopped(f"no Python {wanted} here, and uv cannot fetch one", answer.said, hint)
    return ask([uv, "python", "find", "--no-project", "--managed-python", wanted], 120, variables).stdout.strip()


def _must(course: Course, words: list[str], what: str) -> None:
    answer = ask(words, 300, _variables(course))
    if answer.code:
        raise Stopped(f"{what} {course.environment}", answer.said, "look whether the disk is full, then run the cell again")


def _variables(course: Course) -> dict[str, str]:
    # As for pip: what lies about on the machine in UV_ and PYTHON variables decides nothing. Where uv keeps its Pythons does not matter for what is made.
    kept = {key: value for key, value in course.environ.items() if key in ("UV_CACHE_DIR", "UV_PYTHON_INSTALL_DIR", "UV_PYTHON_INSTALL_MIRROR")}
    return {**pip_variables({}, course.foreign), **kept, "UV_NO_CONFIG": "1", "UV_PYTHON_DOWNLOADS": "never", "UV_NO_PROGRESS": "1"}
