"""Calls Google's `colab` program (google-colab-cli), which is never imported.

Observed with 0.7.5: a cell that raises ends with 0; --timeout of `exec` does not end a cell that
prints nothing; a kernel that dies keeps `exec` waiting forever; an unknown GPU becomes an A100;
unexpected errors are tracebacks. So every call has our own limit, and its exit code alone
decides nothing.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from provision.adapters import files, process
from provision.adapters.google.report_polling import MAX_REPORT_BYTES
from provision.agent.core.process import ProcessResult
from provision.effects.system import ProgressCallback
from provision.errors import ExternalError, NetworkError
from provision.sanitize import escape_line, redact
from provision.spelling import pluralize, with_article

CELL_FOLDER = "/content/provision"
"""The folder of the cell's files there. No part begins with a dot: Jupyter's file service hides
such names.
"""
_SIGN_IN = {
    "adc": "gcloud auth application-default login "
    "--scopes=openid,https://www.googleapis.com/auth/cloud-platform,"
    "https://www.googleapis.com/auth/userinfo.email,https://www.googleapis.com/auth/colaboratory",
    "oauth2": "colab --auth=oauth2 usage",
}
_CALL_S = 120
_ACQUIRE_S = 15 * 60
"""A request for a machine is repeated by the program up to three times; each may take two minutes,
and the waits between them 70 s.
"""
_RESTART_S = 180
_AFTER_CELL_S = 30
_NOT_SIGNED_IN = re.compile(
    r"default credentials|No valid default|Enter the authorization code|EOF when reading a "
    r"line|invalid_grant|DefaultCredentialsError|RefreshError"
    r"|Reauthentication|insufficient authentication scopes|File \S+ was not found|: "
    r"Unauthorized|: Forbidden",
    re.IGNORECASE,
)
_UNREACHABLE = re.compile(
    r"Max retries exceeded|Name or service not known|Connection refused|ConnectTimeout|ReadTimeout"
)
_REFUSALS = {
    "Allocation refused": (
        "this account has too many running sessions, or has reached a usage limit (412)",
        "end other sessions (`colab sessions` lists them), wait, or choose a different `gpu`",
    ),
    "Backend rejected accelerator": (
        "this account is not allowed to use this GPU (400): all GPUs except T4 need a paid plan",
        "choose a different `gpu` for the target, or buy compute units",
    ),
}
"""Reason and hint by the program's output."""
_OPEN_LINK = re.compile(r"^\[[^\]]*$")
_PREFIX = re.compile(r"^\[colab\] (?:Warning: failed to fetch compute-unit info: )?")
_BALANCE = re.compile(r"(?<![\d.])(\d+(?:\.\d+)?) compute units")


@dataclass(frozen=True, slots=True)
class ColabCli:
    """The program, its environment, its way to sign in, and the folder of its sessions."""

    program: str
    environment: Mapping[str, str]
    auth: str
    folder: Path
    base: str = CELL_FOLDER

    @classmethod
    def from_environment(cls, environment: Mapping[str, str], folder: Path) -> ColabCli:
        """Return the program on the caller's PATH.

        PROVISION_COLAB_AUTH selects how it signs in, PROVISION_CELL_BASE where the cell keeps its
        files.

        Raises:
            ExternalError: the program is missing, or the variable has an unknown value.
        """
        auth = environment.get("PROVISION_COLAB_AUTH") or "adc"
        if auth not in _SIGN_IN:
            raise ExternalError(
                f"PROVISION_COLAB_AUTH={escape_line(auth)} is not supported",
                why="expected adc or oauth2",
                hint="set it to one of these values, or unset it",
            )
        program = shutil.which("colab", path=environment.get("PATH", os.defpath))
        if program is None:
            hint = (
                "install it (Python 3.12 or newer): uv tool install google-colab-cli\n"
                f"then sign in: {_SIGN_IN[auth]}\n"
                "or set `via: browser` for the target"
            )
            raise ExternalError(
                "the `colab` program was not found",
                why="`via: colab-cli` requires Google's command-line tool for Colab, which is not "
                "on PATH",
                hint=hint,
            )
        inherited = {
            name: value
            for name, value in environment.items()
            if name not in ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP")
        }
        plain = {
            "TERM": "dumb",
            "NO_COLOR": "1",
            "COLUMNS": "200",
            "PYTHONUTF8": "1",
            "TYPER_STANDARD_TRACEBACK": "1",
            "_TYPER_STANDARD_TRACEBACK": "1",
        }
        return cls(
            program,
            {**inherited, **plain},
            auth,
            folder,
            environment.get("PROVISION_CELL_BASE") or CELL_FOLDER,
        )

    def balance(self) -> str:
        """See RuntimeService."""
        result = self._call(_CALL_S, "usage")
        if result.code != 0 and _NOT_SIGNED_IN.search(result.stdout + result.stderr):
            raise self._not_signed_in(result)
        match = _BALANCE.search(result.stdout)
        return f"{match.group(1)} compute units left" if match else ""

    def take(self, session: str, gpu: str, *, high_memory: bool) -> None:
        """See RuntimeService; the program goes on if we end, and notes its runtime by name."""
        arguments = [
            "new",
            "-s",
            session,
            *(["--gpu", gpu] if gpu else []),
            *(["--high-mem"] if high_memory else []),
        ]
        with self._request_lock(session) as handle:
            try:
                result = process.run_to_completion(
                    self._argv(*arguments), self.environment, holding=handle, timeout_s=_ACQUIRE_S
                )
            except subprocess.TimeoutExpired:
                why = f"no response within {_ACQUIRE_S // 60} minutes"
                raise NetworkError(
                    "Colab is not responding",
                    why=why,
                    hint=f"run the command again{self._unknown_sessions_note()}",
                ) from None
        if result.code != 0:
            self._raise_refusal(result, gpu)

    def run(self, session: str, cell: bytes, timeout_s: int, progress: ProgressCallback) -> bool:
        """Run a cell, report what it prints, and return whether it ended in time."""
        path = self.folder / f"{session}.py"
        files.write(path, cell, 0o600)
        arguments = [
            "exec",
            "-s",
            session,
            "-f",
            str(path),
            "--timeout",
            str(timeout_s),
            "--env",
            f"PROVISION_CELL_BASE={self.base}",
        ]
        limit = timeout_s + _AFTER_CELL_S
        began = time.monotonic()
        try:
            process.stream(
                self._argv(*arguments),
                self.environment,
                _progress_filter(progress),
                timeout_s=limit,
            )
        finally:
            path.unlink(missing_ok=True)
        return time.monotonic() - began < limit

    def restart(self, session: str) -> None:
        """See RuntimeService."""
        result = self._call(_RESTART_S, "restart-kernel", "-s", session)
        if result.code != 0:
            raise ExternalError(
                "the kernel on Colab could not be restarted",
                why=_error_line(result),
                hint="run the command again",
            )

    def fetch(self, session: str, name: str) -> bytes | None:
        """See RuntimeService."""
        path = self.folder / f"{session}.{name}"
        path.unlink(missing_ok=True)
        try:
            result = self._call(
                _CALL_S, "download", "-s", session, f"{self.base.strip('/')}/{name}", str(path)
            )
            return (
                files.read(path, MAX_REPORT_BYTES) if result.code == 0 and path.exists() else None
            )
        finally:
            path.unlink(missing_ok=True)

    def give_back(self, session: str, progress: ProgressCallback) -> None:
        """See RuntimeService; waits for a request that outlived an interrupted run."""
        with self._request_lock(session, progress):
            result = self._call(_CALL_S, "stop", "-s", session)
        if result.code != 0 or not re.search(r"terminated|not found", result.stdout):
            raise ExternalError(
                f"the Colab session {session} could not be stopped", why=_error_line(result)
            )
        (self.folder / f"{session}.lock").unlink(missing_ok=True)

    @contextmanager
    def _request_lock(
        self, session: str, progress: ProgressCallback | None = None
    ) -> Iterator[int]:
        """Hold the lock of a pending request for a runtime.

        The program inherits the descriptor, so that the kernel releases the lock when both have
        ended.
        """
        handle = os.open(
            self.folder / f"{session}.lock",
            os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW,
            0o600,
        )
        try:
            end, is_reported = time.monotonic() + (_ACQUIRE_S if progress else 0), False
            while not _try_lock(handle):
                if progress and not is_reported:
                    progress(
                        f"waiting for Colab's response to the request for {session}, in order "
                        "to release the runtime"
                    )
                    is_reported = True
                if time.monotonic() >= end:
                    raise ExternalError(
                        f"the request for the Colab session {session} is still pending",
                        why="an earlier run sent the request, and Colab has not responded yet",
                        hint="run the command again later",
                    )
                time.sleep(0.2)
            yield handle
        finally:
            os.close(handle)

    def _raise_refusal(self, result: ProcessResult, gpu: str) -> NoReturn:
        """Raise what a request for a machine that was turned down means."""
        output = result.stdout + result.stderr
        machine = f"a machine with {with_article(gpu)}" if gpu else "a CPU machine"
        for text, (why, hint) in _REFUSALS.items():
            if text in output:
                raise ExternalError(f"Colab refused the request for {machine}", why=why, hint=hint)
        if "Service Unavailable" in output:
            raise ExternalError(
                f"Colab has no {machine.removeprefix('a ')} available now",
                why="Colab returned status 503 (service unavailable)",
                hint=f"try again later, or choose a different `gpu`{self._unknown_sessions_note()}",
            )
        if _NOT_SIGNED_IN.search(output):
            raise self._not_signed_in(result)
        kind = NetworkError if _UNREACHABLE.search(output) else ExternalError
        raise kind(
            "the `colab` program could not get a machine",
            why=_error_line(result),
            hint=f"run the command again{self._unknown_sessions_note()}",
        )

    def _not_signed_in(self, result: ProcessResult) -> ExternalError:
        other_auth = next(name for name in _SIGN_IN if name != self.auth)
        hint = (
            f"sign in: {_SIGN_IN[self.auth]}\nor use the other method with "
            f"PROVISION_COLAB_AUTH={other_auth}"
        )
        return ExternalError(
            "the `colab` program is not signed in to Colab", why=_error_line(result), hint=hint
        )

    def _unknown_sessions_note(self) -> str:
        """Return a sentence about runtimes of the account without a session here.

        A request may have been granted although its answer was lost.
        """
        lines = self._call(_CALL_S, "sessions").stdout.splitlines()
        count = sum(line.startswith("[?] ") for line in lines)
        if not count:
            return ""
        return (
            "\n"
            f"this account has {pluralize(count, 'other session')} on Colab; see Runtime > Manage "
            "sessions at colab.research.google.com"
        )

    def _call(self, timeout_s: float, *arguments: str) -> ProcessResult:
        try:
            return process.capture(self._argv(*arguments), self.environment, timeout_s=timeout_s)
        except subprocess.TimeoutExpired:
            return ProcessResult(-1, "", f"no response within {timeout_s:.0f} s")
        except OSError as error:
            raise ExternalError(
                f"cannot start {self.program}",
                why=os.strerror(error.errno or 0),
                hint="reinstall it: uv tool install google-colab-cli",
            ) from error

    def _argv(self, *arguments: str) -> list[str]:
        return [
            self.program,
            f"--auth={self.auth}",
            "--config",
            str(self.folder / "sessions.json"),
            *arguments,
        ]


def _try_lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _progress_filter(progress: ProgressCallback) -> ProgressCallback:
    """Return a callback that passes on the cell's lines, except the base64 of offered files."""
    is_data = False

    def is_reported(line: str) -> None:
        nonlocal is_data
        text = line.strip()
        is_data = (
            "base64," in text
            or bool(_OPEN_LINK.search(text))
            or (is_data and bool(text) and " " not in text)
        )
        if text and not is_data:
            progress(f"  {escape_line(redact(line.rstrip()))[:400]}")

    return is_reported


def _error_line(result: ProcessResult) -> str:
    """Return the error of the program: its own last line, else that of a traceback."""
    lines = [
        line.strip() for line in (result.stdout + "\n" + result.stderr).splitlines() if line.strip()
    ]
    own_lines = [
        _PREFIX.sub("", line) for line in lines if line.startswith("[colab]") and "..." not in line
    ]
    return escape_line(redact((own_lines or lines or [f"exit code {result.code}"])[-1]))[:400]
