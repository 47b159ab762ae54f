"""Command line of the installer: reads a document, installs its packages, writes a result."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ..core.files import write_json_object
from ..core.installed_packages import format_counts
from ..core.process import ProcessResult
from ..core.redact import redact
from .document import AuditLevel, InstallError, read_document
from .installer import UvFailed, install_packages
from .uv_inputs import scrub_environment
from .uv_messages import HASH_MISMATCH, NETWORK_DISABLED

_NOT_THERE = re.compile(r"No solution found|no version of|was not found in the package registry")


def main(words: Sequence[str] | None = None) -> int:
    """Install and return 0; 1 if the request cannot be met, 2 if it could not be tried.

    A file that does not match the lock, or a version that does not exist, gives 1.
    """
    arguments = _parser().parse_args(words)
    try:
        request = read_document(arguments.document, arguments.python)
        _require_writable(arguments.result)
        if arguments.audit:
            request = replace(request, audit=AuditLevel(arguments.audit))
        environment = scrub_environment(os.environ)
        if arguments.offline:
            environment["UV_OFFLINE"] = "1"
        with tempfile.TemporaryDirectory(prefix="provision-") as folder:
            result = install_packages(request, _uv(arguments.uv), environment, _run, Path(folder))
        try:
            write_json_object(arguments.result, result)
        except OSError as error:
            raise _write_error(arguments.result, error) from None
    except InstallError as error:
        return _say(error.exit_code, error.what, error.why, error.hint)
    except UvFailed as error:
        return _uv_failed(error)
    except KeyboardInterrupt:
        return _say(130, "interrupted")
    print(format_counts(result["counts"]) or "nothing to install")
    for note in result["notes"]:
        print(f"note: {note}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="installer",
        description="Installs locked packages, every file checked against its hash.",
    )
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    verb = verbs.add_parser("install", help="install the packages that a document lists")
    verb.add_argument(
        "--document", type=Path, required=True, metavar="FILE", help="the packages to install"
    )
    verb.add_argument(
        "--result",
        type=Path,
        required=True,
        metavar="FILE",
        help="write the result to this file",
    )
    verb.add_argument(
        "--python",
        default=sys.executable,
        metavar="PATH",
        help="install into this interpreter if the document does not specify one (default: the "
        "current interpreter)",
    )
    verb.add_argument(
        "--uv",
        default="",
        metavar="PATH",
        help="run this uv (default: the one next to this interpreter, otherwise the one on PATH)",
    )
    verb.add_argument(
        "--audit",
        choices=[audit.value for audit in AuditLevel],
        help="compare installed files by sha256 or only by size (default: as in the document)",
    )
    verb.add_argument("--offline", action="store_true", help="use only the files in uv's cache")
    return parser


def _uv(named: str) -> str:
    program = (
        named or shutil.which("uv", path=os.path.dirname(sys.executable)) or shutil.which("uv")
    )
    if not program:
        raise InstallError(
            "uv is not installed",
            "it is neither next to this interpreter nor on PATH",
            "run `python -m pip install uv`, or pass --uv PATH",
        )
    return os.path.abspath(program)


def _run(argv: list[str], environment: Mapping[str, str], folder: Path | None) -> ProcessResult:
    # Not in a new process group: stopping the installer's group stops uv too.
    done = subprocess.run(
        argv,
        env=dict(environment),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    return ProcessResult(done.returncode, done.stdout, done.stderr)


def _uv_failed(error: UvFailed) -> int:
    output = redact(error.output, hidden="***")
    if HASH_MISMATCH.search(output):
        return _say(
            1,
            "a file on the index does not match the lock; nothing was installed",
            output,
            "if the change is expected, lock again",
        )
    if NETWORK_DISABLED.search(output):
        return _say(
            2,
            "a required file is not in uv's cache, and network access is off",
            output,
            "run again with network access",
        )
    return _say(
        1 if _NOT_THERE.search(output) else 2, f"uv failed (exit code {error.code})", output
    )


def _require_writable(result: Path) -> None:
    # Checked first: an installation without a result is worth little.
    if result.is_dir():
        raise InstallError(f"cannot write the result to {result}", "it is a folder")
    try:
        with tempfile.TemporaryFile(dir=result.parent):
            pass
    except OSError as error:
        raise _write_error(result, error) from None


def _write_error(path: Path, error: OSError) -> InstallError:
    return InstallError(f"cannot write the result to {path}", error.strerror or str(error))


def _say(code: int, what: str, why: str = "", hint: str = "") -> int:
    """Print an error and return its exit code. Foreign text gets no control characters."""
    lines = [f"error: {what}", *(f"  {line}" for line in why.splitlines())]
    if hint:
        lines.append(f"hint: {hint}")
    for line in lines:
        shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in line)
        print(shown, file=sys.stderr)
    return code
