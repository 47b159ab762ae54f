"""Google's `colab` program (google-colab-cli), called and never imported: what it is given, how
long it may take, and what it says when it cannot.

Seen of 0.7.5: a cell that raises ends with 0; --timeout of `exec` does not end a cell that
prints nothing; a kernel that dies keeps `exec` waiting for ever;
an unknown GPU becomes an A100; errors that it does not expect are tracebacks. So every call has
a limit of our own, and its exit code decides nothing alone.
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
from provision.effects.system import ProgressCallback
from provision.errors import ExternalError, NetworkError
from provision.sanitize import escape_line, redact

CELL_FOLDER = "/content/provision"
"""Where the cell keeps its files there. No part begins with a dot: Jupyter's file service hides
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
_OPEN_LINK = re.compile(r"^\[[^\]]*$")
_PREFIX = re.compile(r"^\[colab\] (?:Warning: failed to fetch compute-unit info: )?")
_BALANCE = re.compile(r"(?<![\d.])(\d+(?:\.\d+)?) compute units")


@dataclass(frozen=True, slots=True)
class ColabCli:
    """The program, the variables it gets, how it signs in, and the folder in which it keeps what it
    knows of our sessions (its tokens among that).
    """

    program: str
    environment: Mapping[str, str]
    auth: str
    folder: Path
    base: str = CELL_FOLDER

    @classmethod
    def from_environment(cls, environment: Mapping[str, str], folder: Path) -> ColabCli:
        """Return the program on the caller's PATH. PROVISION_COLAB_AUTH says how it signs in,
        PROVISION_CELL_BASE where the cell keeps its files.
        """
        auth = environment.get("PROVISION_COLAB_AUTH") or "adc"
        if auth not in _SIGN_IN:
            raise ExternalError(
                f"PROVISION_COLAB_AUTH is {escape_line(auth)}",
                why="the colab program knows adc and oauth2",
                hint="use one of them, or unset it",
            )
        program = shutil.which("colab", path=environment.get("PATH", os.defpath))
        if program is None:
            hint = (
                "install it (Python 3.12 or newer): uv tool install google-colab-cli\nthen "
                f"sign in: {_SIGN_IN[auth]}\nor write via: browser at the target"
            )
            raise ExternalError(
                "there is no program called colab",
                why="via: colab-cli works through Google's own command line, and it is not on "
                "the PATH",
                hint=hint,
            )
        kept = {
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
            {**kept, **plain},
            auth,
            folder,
            environment.get("PROVISION_CELL_BASE") or CELL_FOLDER,
        )

    def balance(self) -> str:
        """Return what the account has left, "" where it cannot be told; raises WorldError where
        nobody is signed in.
        """
        done = self._call(_CALL_S, "usage")
        if done.code != 0 and _NOT_SIGNED_IN.search(done.stdout + done.stderr):
            raise self._not_signed_in(done)
        found = _BALANCE.search(done.stdout)
        return f"{found.group(1)} compute units left" if found else ""

    def take(self, session: str, gpu: str, *, high_memory: bool) -> None:
        """Take a machine. The program goes on when we end meanwhile, so that what it is given is
        known by its name, and can be given back.
        """
        words = [
            "new",
            "-s",
            session,
            *(["--gpu", gpu] if gpu else []),
            *(["--high-mem"] if high_memory else []),
        ]
        with self._request_lock(session) as handle:
            try:
                done = process.run_to_completion(
                    self._argv(*words), self.environment, holding=handle, timeout_s=_ACQUIRE_S
                )
            except subprocess.TimeoutExpired:
                why = f"nothing came within {_ACQUIRE_S // 60} minutes"
                raise NetworkError(
                    "Colab does not answer",
                    why=why,
                    hint=f"run the command again{self._unknown_sessions_note()}",
                ) from None
        if done.code != 0:
            self._raise_refusal(done, gpu)

    def run(self, session: str, cell: bytes, timeout_s: int, progress: ProgressCallback) -> bool:
        """Run a cell and tell what it prints; returns whether it came to an end in time."""
        path = self.folder / f"{session}.py"
        files.write(path, cell, 0o600)
        words = [
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
                self._argv(*words), self.environment, _progress_filter(progress), timeout_s=limit
            )
        finally:
            path.unlink(missing_ok=True)
        return time.monotonic() - began < limit

    def restart(self, session: str) -> None:
        """Restart the kernel; raises WorldError."""
        done = self._call(_RESTART_S, "restart-kernel", "-s", session)
        if done.code != 0:
            raise ExternalError(
                "the kernel on Colab could not be restarted",
                why=_error_line(done),
                hint="run the command again",
            )

    def fetch(self, session: str, name: str) -> bytes | None:
        """Return a file of the cell's folder, None when it cannot be had."""
        path = self.folder / f"{session}.{name}"
        path.unlink(missing_ok=True)
        try:
            done = self._call(
                _CALL_S, "download", "-s", session, f"{self.base.strip('/')}/{name}", str(path)
            )
            return files.read(path, MAX_REPORT_BYTES) if done.code == 0 and path.exists() else None
        finally:
            path.unlink(missing_ok=True)

    def give_back(self, session: str, progress: ProgressCallback) -> None:
        """Give a machine back, once a request for it that goes on from a run that was cut short has
        been answered.
        """
        with self._request_lock(session, progress):
            done = self._call(_CALL_S, "stop", "-s", session)
        if done.code != 0 or not re.search(r"terminated|not found", done.stdout):
            raise ExternalError(f"{session} on Colab could not be stopped", why=_error_line(done))
        (self.folder / f"{session}.lock").unlink(missing_ok=True)

    @contextmanager
    def _request_lock(
        self, session: str, progress: ProgressCallback | None = None
    ) -> Iterator[int]:
        """Hold the lock that says "a machine is being asked for under this name"; the program
        inherits it, and the kernel lets go of it when both end.
        """
        handle = os.open(
            self.folder / f"{session}.lock",
            os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW,
            0o600,
        )
        try:
            end, told = time.monotonic() + (_ACQUIRE_S if progress else 0), False
            while not _try_lock(handle):
                if progress and not told:
                    progress(
                        f"waiting for Colab's answer to the request for {session}, so that "
                        "it can be given back"
                    )
                    told = True
                if time.monotonic() >= end:
                    raise ExternalError(
                        f"{session} is still being asked for",
                        why="an earlier run's request is not answered",
                        hint="run the command again later",
                    )
                time.sleep(0.2)
            yield handle
        finally:
            os.close(handle)

    def _raise_refusal(self, done: process.ProcessResult, gpu: str) -> NoReturn:
        """Raise what a request for a machine that was turned down means."""
        said, wanted = done.stdout + done.stderr, f"a machine with {gpu or 'no GPU'}"
        if "Allocation refused" in said:
            why = (
                "too many sessions of this account run, or it has reached a limit of use for "
                "now (412)"
            )
            raise ExternalError(
                f"Colab refused {wanted}",
                why=why,
                hint="end other sessions (colab sessions), wait, or ask for another gpu",
            )
        if "Backend rejected accelerator" in said:
            why = "this account has no right to it (400): all but T4 need a paid plan"
            raise ExternalError(
                f"Colab refused {wanted}",
                why=why,
                hint="ask for another gpu at the target, or get compute units",
            )
        if "Service Unavailable" in said:
            raise ExternalError(
                f"Colab has no {wanted.removeprefix('a ')} free now",
                why="it answered 503",
                hint=f"try later, or another gpu{self._unknown_sessions_note()}",
            )
        if _NOT_SIGNED_IN.search(said):
            raise self._not_signed_in(done)
        kind = NetworkError if _UNREACHABLE.search(said) else ExternalError
        raise kind(
            "the colab program could not get a machine",
            why=_error_line(done),
            hint=f"run the command again{self._unknown_sessions_note()}",
        )

    def _not_signed_in(self, done: process.ProcessResult) -> ExternalError:
        other = next(way for way in _SIGN_IN if way != self.auth)
        hint = (
            f"sign in: {_SIGN_IN[self.auth]}\nor choose its other way with "
            f"PROVISION_COLAB_AUTH={other}"
        )
        return ExternalError(
            "the colab program is not signed in for Colab", why=_error_line(done), hint=hint
        )

    def _unknown_sessions_note(self) -> str:
        """Return a sentence about machines of the account that no session here knows: a request may
        have been granted and its answer lost.
        """
        lines = self._call(_CALL_S, "sessions").stdout.splitlines()
        count = sum(line.startswith("[?] ") for line in lines)
        return (
            f"\nColab lists {count} of this account not known here; look at Runtime > "
            "Manage sessions at colab.research.google.com"
            if count
            else ""
        )

    def _call(self, timeout_s: float, *words: str) -> process.ProcessResult:
        try:
            return process.capture(self._argv(*words), self.environment, timeout_s=timeout_s)
        except subprocess.TimeoutExpired:
            return process.ProcessResult(-1, "", f"no answer within {timeout_s:.0f} s")
        except OSError as error:
            raise ExternalError(
                f"cannot start {self.program}",
                why=os.strerror(error.errno or 0),
                hint="install it again: uv tool install google-colab-cli",
            ) from error

    def _argv(self, *words: str) -> list[str]:
        return [
            self.program,
            f"--auth={self.auth}",
            "--config",
            str(self.folder / "sessions.json"),
            *words,
        ]


def _try_lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _progress_filter(progress: ProgressCallback) -> ProgressCallback:
    """Return what tells the lines that come from the machine, but for files that the cell offers a
    browser: the program writes these out as base64.
    """
    data = False

    def told(line: str) -> None:
        nonlocal data
        text = line.strip()
        data = (
            "base64," in text
            or bool(_OPEN_LINK.search(text))
            or (data and bool(text) and " " not in text)
        )
        if text and not data:
            progress(f"  {escape_line(redact(line.rstrip()))[:400]}")

    return told


def _error_line(done: process.ProcessResult) -> str:
    """Return what the program says is wrong: its own last line, else the last line of a traceback."""  # noqa: E501
    lines = [
        line.strip() for line in (done.stdout + "\n" + done.stderr).splitlines() if line.strip()
    ]
    own = [
        _PREFIX.sub("", line) for line in lines if line.startswith("[colab]") and "..." not in line
    ]
    return escape_line(redact((own or lines or [f"exit code {done.code}"])[-1]))[:400]
