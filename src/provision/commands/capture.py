"""Capture an environment: `agent/capture.py` runs in the Python of the user's programs."""

from __future__ import annotations

import ast
import json
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import provision
from provision.commands.shared.interpreters import interpreter_error
from provision.effects.system import Reader
from provision.errors import ExternalError, ProvisionError, Refused
from provision.spelling import pluralize
from provision.verification.diff.snapshot import CAPTURE_SCHEMA

if TYPE_CHECKING:
    from provision.agent.core.process import ProcessResult

_TIMEOUT_S = 60.0
_FUTURE = "from __future__ import annotations\n"
_OWN_IMPORT = r"\nfrom \.capture_paths import .*\n"
_IMPORTS = ("import ", "from ")
_MAIN = 'if __name__ == "__main__":'
_CELL_END = """_capture = json.dumps(capture_environment(), indent=1)
print(_capture)
try:
    with open("capture.json", "w", encoding="utf-8") as _file:
        _file.write(_capture + "\\n")
except OSError as _error:
    print(f"capture.json was not written: {_error.strerror}", file=sys.stderr)
"""


def capture(
    python: Path | None,
    environment: Mapping[str, str],
    own: Path,
    run_program: Callable[..., ProcessResult],
) -> tuple[str, str]:
    """Return a capture as JSON text, and a remark that names the Python that made it.

    Args:
        python: The interpreter; None for the first on the PATH, or `own` if that fails.
        environment: The environment variables.
        own: provision's own interpreter.
        run_program: Runs a program, as `adapters.zipapp_runner.run_zipapp` does.

    Raises:
        ExternalError: the named interpreter cannot run the program.
    """

    def read(interpreter: Path, reason: str = "") -> tuple[str, str]:
        text = _read_capture(interpreter, environment, run_program)
        return text, f"{reason}{_describe(text)} in {interpreter}"

    path = environment.get("PATH")
    if python is not None:
        # A path, a name on the PATH, or the folder of an environment.
        if python.is_dir():
            return read(python.absolute() / "bin" / "python")
        return read(Path(shutil.which(str(python), path=path) or python).absolute())
    first = shutil.which("python3", path=path) or shutil.which("python", path=path)
    if first is None:
        return read(own, "there is no Python on PATH; using the Python that runs provision: ")
    try:
        return read(Path(first))
    except ProvisionError as error:
        return read(own, f"{error.what}; using the Python that runs provision: ")


def _describe(text: str) -> str:
    document = json.loads(text)
    version = document["readings"].get("python.version") or "unknown"
    return f"Python {version} with {pluralize(len(document['packages']), 'package')}"


def cell_text() -> str:
    """Return a notebook cell that prints a capture and writes it to capture.json."""
    return _without_remarks(_program_text().partition(_MAIN)[0]) + _CELL_END


def _without_remarks(text: str) -> str:
    """Return a program without comments and types of results, with a docstring of one line."""
    lines = text.splitlines(keepends=True)
    program = ast.parse(text)
    for node in ast.walk(program):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            end = node.end_lineno or node.lineno
            lines[node.lineno - 1 : end] = [""] * (end - node.lineno + 1)
    summary = (ast.get_docstring(program) or "").partition("\n")[0]
    kept = "".join(line for line in lines if not line.lstrip().startswith("#"))
    kept = re.sub(r"\) -> .+:\n", "):\n", re.sub(r"  # noqa: .*", "", kept))
    return f'"""{summary}"""\n' + re.sub(r"\n{3,}", "\n\n", kept)


def check_output_path(out: Path, reader: Reader, *, force: bool) -> None:
    """Check that a capture can be written to a path.

    Raises:
        Refused: the file exists, and `force` is not set.
        ExternalError: there is no such folder.
    """
    if not reader.exists(out.parent):
        raise ExternalError(
            f"cannot write {out}",
            why=f"there is no folder {out.parent}",
            hint="create the folder, or choose another path",
        )
    if reader.exists(out / ".."):  # only a folder has a parent entry
        raise Refused(
            f"{out} is a folder",
            hint=f"use the path of a file, such as {out / 'capture.json'}",
        )
    if reader.exists(out) and not force:
        raise Refused(
            f"{out} already exists", hint="choose another file, or overwrite this one with --force"
        )


def _program_text() -> str:
    """Return the program as one text: its two modules without the import between them."""
    folder = Path(provision.__file__).parent / "agent"
    main, paths = (
        (folder / name).read_text(encoding="utf-8") for name in ("capture.py", "capture_paths.py")
    )
    head, _, end = re.sub(_OWN_IMPORT, "", main).partition(_MAIN)
    body = paths.partition(_FUTURE)[2].splitlines(keepends=True)
    known = {line for line in head.splitlines(keepends=True) if line.startswith(_IMPORTS)}
    return head + "".join(line for line in body if line not in known) + f"\n\n{_MAIN}{end}"


def _read_capture(
    python: Path, environment: Mapping[str, str], run_program: Callable[..., ProcessResult]
) -> str:
    content = _program_text().encode()
    result = run_program(python, content, (), environment, timeout_s=_TIMEOUT_S)
    try:
        document = json.loads(result.stdout)
    except (ValueError, RecursionError):
        document = None
    if result.code or not isinstance(document, dict) or document.get("schema") != CAPTURE_SCHEMA:
        raise interpreter_error(python, "cannot create a capture", result, environment, run_program)
    return json.dumps(document, indent=1) + "\n"
