"""Command line of the installer: reads a document, installs its packages, writes a result."""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ..core.files import write_atomically
from ..core.process import ProcessResult
from ..core.redact import redact
from .document import AuditLevel, InstallError, read_document
from .installer import UvFailed, install_packages
from .uv_environment import scrub_environment
from .uv_messages import HASH_MISMATCH, NETWORK_DISABLED

_NOT_THERE = re.compile(r"No solution found|no version of|was not found in the package registry")


def main(words: Sequence[str] | None = None) -> int:
    """Install and return 0; 1 if the request cannot be met, 2 if it could not be tried.

    A file that is not the locked one, or a version that does not exist, is 1.
    """
    arguments = _parser().parse_args(words)
    try:
        wanted = read_document(arguments.document, arguments.python)
        _require_writable(arguments.result)
        if arguments.audit:
            wanted = replace(wanted, audit=AuditLevel(arguments.audit))
        environment = scrub_environment(os.environ)
        if arguments.offline:
            environment["UV_OFFLINE"] = "1"
        with tempfile.TemporaryDirectory(prefix="provision-") as folder:
            result = install_packages(wanted, _uv(arguments.uv), environment, _run, Path(folder))
        _write(arguments.result, json.dumps(result, indent=1, sort_keys=True) + "\n")
    except InstallError as error:
        return _say(error.exit_code, error.what, error.why, error.hint)
    except UvFailed as error:
        return _uv_failed(error)
    except KeyboardInterrupt:
        return _say(130, "interrupted")
    print(
        ", ".join(f"{count} {kind}" for kind, count in result["counts"].items() if count)
        or "nothing to install"
    )
    for note in result["notes"]:
        print(f"note: {note}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="installer",
        description="Installs locked packages, every file checked against its hash.",
    )
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    verb = verbs.add_parser("install", help="install what a document lists")
    verb.add_argument(
        "--document", type=Path, required=True, metavar="FILE", help="what to install"
    )
    verb.add_argument(
        "--result",
        type=Path,
        required=True,
        metavar="FILE",
        help="where to write what became of it",
    )
    verb.add_argument(
        "--python",
        default=sys.executable,
        metavar="PATH",
        help="the interpreter, where the document names none (default: this one)",
    )
    verb.add_argument(
        "--uv",
        default="",
        metavar="PATH",
        help="the uv to call (default: the one beside this interpreter, else that of PATH)",
    )
    verb.add_argument(
        "--audit",
        choices=[audit.value for audit in AuditLevel],
        help="compare installed files by sha256, or by size only",
    )
    verb.add_argument("--offline", action="store_true", help="take everything from uv's cache")
    return parser


def _uv(named: str) -> str:
    found = named or shutil.which("uv", path=os.path.dirname(sys.executable)) or shutil.which("uv")
    if not found:
        raise InstallError(
            "there is no uv on this machine",
            "it is neither beside this interpreter nor on the PATH",
            "python -m pip install uv, or --uv PATH",
        )
    return os.path.abspath(found)


def _run(argv: list[str], environment: Mapping[str, str], folder: Path | None) -> ProcessResult:
    # Not in a group of its own: whoever ends the installer's group ends uv with it.
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
            "a file on the index is not the one that was locked; nothing was installed",
            output,
            "if the change is meant, lock again",
        )
    if NETWORK_DISABLED.search(output):
        return _say(
            2,
            "something is needed that is not in uv's cache, and the network is switched off",
            output,
            "run once with network",
        )
    return _say(
        1 if _NOT_THERE.search(output) else 2, f"uv failed (exit code {error.code})", output
    )


def _require_writable(result: Path) -> None:
    # Asked first: an installation whose outcome cannot be told is worth little.
    if result.is_dir():
        raise InstallError(f"cannot write the result {result}", "it is a folder")
    try:
        with tempfile.TemporaryFile(dir=result.parent):
            pass
    except OSError as error:
        raise InstallError(
            f"cannot write the result {result}", error.strerror or str(error)
        ) from None


def _write(path: Path, text: str) -> None:
    try:
        write_atomically(path, text, mode=0o644)
    except OSError as error:
        raise InstallError(
            f"cannot write the result {path}", error.strerror or str(error)
        ) from None


def _say(code: int, what: str, why: str = "", hint: str = "") -> int:
    # What uv and a document say is foreign: no control characters.
    lines = [
        f"error: {what}",
        *(f"  {line}" for line in why.splitlines()),
        *([f"hint: {hint}"] if hint else []),
    ]
    print(
        "\n".join("".join(c if c.isprintable() else repr(c)[1:-1] for c in line) for line in lines),
        file=sys.stderr,
    )
    return code
