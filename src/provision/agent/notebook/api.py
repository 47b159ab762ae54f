"""What a notebook calls: `start` for all stages, `verify` for the proof alone, `rollback` for the
way back, `run` for a program in the environment.
"""

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
from .document import parse_document
from .errors import StageError
from .kernel import Notebook, find_notebook
from .loaded_modules import identify_kernel_process
from .output import Printer
from .package_stages import roll_back_packages
from .payload import DamagedPayload, compute_payload_digest
from .process_environment import apply_environment
from .run_state import read_run_state
from .session import Session
from .stages import STAGES, VERIFY_STAGES, run_stages

_AGAIN = "run the bootstrap cell again: it lays out its files anew"


def start(
    folder: str | os.PathLike[str],
    *,
    continue_anyway: bool = False,
    restart: bool = False,
    notebook: Notebook | None = None,
) -> None:
    """Bring this runtime to what the cell's document says and prove it. Raises Stopped.

    `continue_anyway` goes on where the machine is not the one that was asked for; `restart`
    restarts the kernel where something loaded was changed.
    """
    course = _open(Path(folder), notebook, continue_anyway=continue_anyway, restart=restart)
    with _alone(course):
        run_stages(course, STAGES)


def verify(
    folder: str | os.PathLike[str],
    *,
    continue_anyway: bool = False,
    again: bool = False,
    notebook: Notebook | None = None,
) -> None:
    """Prove what an earlier `start` set up, also in a fresh kernel; `again` runs the probe though a
    stored report still holds. Raises Stopped.
    """
    course = _open(Path(folder), notebook, continue_anyway=continue_anyway, again=again)
    if not course.install_result:
        raise StageError("nothing has been set up here yet", "", "run the bootstrap cell first")
    with _alone(course):
        run_stages(course, [stage for stage in STAGES if stage[0] in VERIFY_STAGES])


def rollback(folder: str | os.PathLike[str]) -> None:
    """Bring the packages that the cell changed back to what they were, and take away those that it
    added. Raises Stopped.
    """
    course = _open(Path(folder), None)
    if not course.document.shared:
        raise StageError(
            "there is nothing to put back",
            "the packages are in an environment of their own",
            f"remove {course.environment}",
        )
    with _alone(course):
        try:
            done, left = roll_back_packages(course)
        except OSError as error:
            why = f"{error.filename}: {error.strerror or error}"
            raise StageError(
                "cannot put the packages back",
                why,
                "delete the runtime to get a fresh one",
                "error",
            ) from None
    course.printer.print_stage_line(
        "rollback",
        f"{len(done)} packages are as they were before: {', '.join(done) or 'none was changed'}",
    )
    if left:
        course.printer.print_detail(
            f"no copy was kept of {', '.join(left)}: install them with pip, or delete the "
            "runtime to get a fresh one"
        )
    if done:
        course.printer.print_detail("restart the runtime if this kernel has used them")


def run(folder: str | os.PathLike[str], argv: Sequence[str], *, cwd: str | None = None) -> int:
    """Run a program by the environment's Python (`run(FOLDER, ["train.py", "--epochs", "1"])`),
    show what it prints, return its exit code.

    Raises Stopped.
    """
    course = _open(Path(folder), None)
    if not course.install_result:
        raise StageError("nothing has been set up here yet", "", "run the bootstrap cell first")
    apply_environment(course)
    variables = {**course.variables, "PYTHONUNBUFFERED": "1"}
    return _stream([course.python, *argv], variables, cwd, course.printer)


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
    except (DamagedPayload, DocumentError) as error:
        raise StageError(
            "the cell's files were changed or cut", str(error), _AGAIN, "error"
        ) from None
    ledger = read_run_state(folder, identify_kernel_process())
    tell = Printer()
    tell.add_secrets(os.environ[name] for name in document.secrets if name in os.environ)
    return Session(
        folder,
        document,
        payload,
        notebook or find_notebook(),
        ledger,
        tell,
        os.environ,
        continue_anyway,
        restart,
        again,
    )


@contextmanager
def _alone(course: Session) -> Iterator[None]:
    """Let one run at a time work on this machine's packages: another notebook of the same runtime
    waits its turn.
    """
    try:
        file: Any = (course.base / "lock").open("a")
    except OSError as error:
        hint = "set PROVISION_CELL_BASE to a folder that can be written, then run the cell again"
        raise StageError(
            f"cannot write in {course.base}", error.strerror or str(error), hint, "error"
        ) from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            hint = "wait until it has ended, then run this one again"
            raise StageError("another run of a cell is at work on this runtime", "", hint) from None
        yield


def _stream(argv: list[str], variables: dict[str, str], cwd: str | None, tell: Printer) -> int:
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
            "interrupted", "the program and all that it had started were ended", "run it again"
        ) from None
    finally:
        if process.poll() is None:
            end_process_group(process)
            process.wait()
    if code:
        tell.print_stage_line("run", f"{Path(argv[0]).name} ended with exit code {code}")
    return code
