"""The functions that a notebook calls: `start`, `verify`, `rollback` and `run`."""

from __future__ import annotations

import codecs
import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..core.agent_config import DocumentError, read_document
from ..core.process import end_process_group
from .document import compute_payload_digest, parse_document
from .errors import StageError
from .kernel import Notebook, find_notebook
from .loaded_modules import identify_kernel_process
from .memory_kills import count_memory_kills, describe_program_kills
from .output import Printer, format_package_count
from .package_stages import roll_back_packages
from .process_environment import apply_environment
from .session import Session, read_run_state
from .stages import STAGES, VERIFY_STAGES, run_stages

_AGAIN = "run the first cell again; it writes its files again"


def start(
    folder: str | os.PathLike[str],
    *,
    continue_anyway: bool = False,
    restart: bool = False,
    notebook: Notebook | None = None,
) -> None:
    """Set this runtime up as the cell's document declares and verify it. Raises StageError.

    `continue_anyway` goes on if the machine is not the required one; `restart` restarts the kernel
    if a loaded package was changed.
    """
    session = _open(Path(folder), notebook, continue_anyway=continue_anyway, restart=restart)
    with _locked(session):
        run_stages(session, STAGES)


def verify(
    folder: str | os.PathLike[str],
    *,
    continue_anyway: bool = False,
    again: bool = False,
    notebook: Notebook | None = None,
) -> None:
    """Verify what an earlier `start` set up, also in a fresh kernel. Raises StageError.

    `again` runs the probe although a stored report is still valid.
    """
    session = _open(Path(folder), notebook, continue_anyway=continue_anyway, again=again)
    _require_set_up(session)
    with _locked(session):
        run_stages(session, [stage for stage in STAGES if stage[0] in VERIFY_STAGES])


def rollback(folder: str | os.PathLike[str]) -> None:
    """Restore the packages that the cell changed, and remove those it added. Raises StageError."""
    session = _open(Path(folder), None)
    if not session.document.shared:
        raise StageError(
            "there is nothing to restore",
            "the packages are in a separate environment",
            f"to remove the environment, delete {session.environment}",
        )
    session.stage = "rollback"
    with _locked(session):
        try:
            done, left = roll_back_packages(session)
        except OSError as error:
            raise StageError(
                "cannot restore the packages",
                f"{error.filename}: {error.strerror or error}",
                "delete the runtime to get a new one",
                "error",
            ) from None
    restored = f"restored {format_package_count(len(done))}: {', '.join(done)}"
    session.print_line(restored if done else "no package was changed")
    if left:
        session.print_detail(
            f"there is no backup of {', '.join(left)}: install them with pip, or delete the "
            "runtime to get a new one"
        )
    if done:
        session.print_detail("restart the runtime if this kernel has imported them")


def run(folder: str | os.PathLike[str], argv: Sequence[str], *, cwd: str | None = None) -> int:
    """Run a program with the environment's Python, print its output, return its exit code.

    For example `run(FOLDER, ["train.py", "--epochs", "1"])`. Without `cwd` it starts in the folder
    of the project's code, if there is any.

    Raises StageError.
    """
    session = _open(Path(folder), None)
    _require_set_up(session)
    apply_environment(session)
    variables = {**session.variables, "PYTHONUNBUFFERED": "1"}
    if cwd is None and session.code_folder is not None:
        cwd = str(session.code_folder)
    kills = count_memory_kills(session.system_root)
    code = _stream([session.python, *argv], variables, cwd, session.printer)
    for line in describe_program_kills(kills, count_memory_kills(session.system_root)):
        session.print_detail(line)
    return code


def _require_set_up(session: Session) -> None:
    if not session.install_result:
        raise StageError("the environment is not set up yet", "", "run the first cell")


def _open(
    folder: Path,
    notebook: Notebook | None,
    *,
    continue_anyway: bool = False,
    restart: bool = False,
    again: bool = False,
) -> Session:
    folder = Path(os.path.realpath(folder))
    try:
        payload = compute_payload_digest(folder)
        document = read_document(folder / "document.json", parse_document)
    except DocumentError as error:
        raise StageError(
            "some of the files that this cell unpacked are missing or were changed",
            str(error),
            _AGAIN,
            "error",
        ) from None
    printer = Printer()
    printer.add_secrets(os.environ[name] for name in document.secrets if name in os.environ)
    return Session(
        folder,
        document,
        payload,
        notebook or find_notebook(),
        read_run_state(folder, identify_kernel_process()),
        printer,
        os.environ,
        continue_anyway,
        restart,
        again,
    )


@contextmanager
def _locked(session: Session) -> Iterator[None]:
    """Lock this machine's packages: only one notebook of a runtime may change them at a time."""
    try:
        file: Any = (session.base / "lock").open("a")
    except OSError as error:
        hint = "set PROVISION_CELL_BASE to a writable folder, then run the cell again"
        raise StageError(
            f"cannot write to {session.base}", error.strerror or str(error), hint, "error"
        ) from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            hint = "wait until that cell ends, then run this cell again"
            raise StageError("another cell is already running on this runtime", "", hint) from None
        yield


def _stream(argv: list[str], variables: dict[str, str], cwd: str | None, printer: Printer) -> int:
    try:
        process = subprocess.Popen(
            argv,
            env=variables,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        raise StageError(f"cannot start {argv[0]}", error.strerror or str(error), _AGAIN) from None
    decode = codecs.getincrementaldecoder("utf-8")("replace").decode
    try:
        while chunk := os.read(process.stdout.fileno(), 65536) if process.stdout else b"":
            sys.stdout.write(decode(chunk))
            sys.stdout.flush()
        code = process.wait()
    except KeyboardInterrupt:
        raise StageError(
            "interrupted",
            "the program and its child processes were stopped",
            "run the program again",
        ) from None
    finally:
        if process.poll() is None:
            end_process_group(process)
            process.wait()
    if code:
        printer.print_stage_line("run", f"{Path(argv[0]).name} exited with code {code}")
    return code
