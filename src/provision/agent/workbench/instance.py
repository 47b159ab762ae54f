"""The instance as the phases see it: who owns the environment, where things lie, and how programs
are started.
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .status import SecretRedactor

_VARIABLES = (
    "PATH",
    "LANG",
    "TZ",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
)
_QUIET = {
    "PIP_PROGRESS_BAR": "off",
    "PIP_NO_INPUT": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "UV_NO_PROGRESS": "1",
    "UV_NO_CONFIG": "1",
    "UV_SYSTEM_CERTS": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "TQDM_DISABLE": "1",
    "NO_COLOR": "1",
}


class PhaseFailed(Exception):
    """A phase did not reach its end; the text is for a person, its first line tells what failed."""


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """How a program ended (124: its time was up), the end of all that it wrote, and what it wrote
    to stdout.
    """

    code: int
    output: str
    stdout: str = ""


@dataclass(frozen=True, slots=True)
class UserAccount:
    """Who uses JupyterLab: the account and its home."""

    name: str
    uid: int
    gid: int
    home: Path


@dataclass
class Instance:
    """One instance. All below the person's home is done as that person: root follows no link that a
    person can place.
    """

    user: UserAccount
    work: Path
    redactor: SecretRedactor
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)

    @property
    def provision_folder(self) -> Path:
        """The folder on the data disk."""
        return self.user.home / ".provision"

    def run(
        self,
        argv: Sequence[str],
        timeout_s: float,
        *,
        root: bool = False,
        variables: Mapping[str, str] | None = None,
        given: bytes = b"",
        folder: Path | None = None,
    ) -> ProcessResult:
        """Run a program to its end, as the person or as root, with few variables; what it writes
        goes to the log, cleaned. At the limit its group is killed.
        """
        own = self.environ.get("HOME", "/root") if root else str(self.user.home)
        base = {key: value for key in _VARIABLES if (value := self.environ.get(key))}
        try:
            process = subprocess.Popen(
                list(argv),
                env={
                    **base,
                    **_QUIET,
                    "HOME": own,
                    "USER": "root" if root else self.user.name,
                    **(variables or {}),
                },
                cwd=folder or "/",
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                umask=0o022,
                **({} if root else self._account()),
            )
        except OSError as error:
            return ProcessResult(127, f"{argv[0]}: {error.strerror or error}")
        stdout, stderr, code = _to_the_end(process, given, timeout_s)
        told = stdout.decode("utf-8", "replace")
        text = self.redactor.clean(told + stderr.decode("utf-8", "replace"))
        sys.stderr.write(re.sub(r"(?m)^", "  ", text.rstrip()) + "\n" if text.strip() else "")
        sys.stderr.flush()
        return ProcessResult(code, text[-4000:], told.strip())

    def run_checked(self, what: str, argv: Sequence[str], timeout_s: float, **how: Any) -> str:
        """Run a program and return its stdout; raise PhaseFailed with its last words when it fails."""  # noqa: E501
        answer = self.run(argv, timeout_s, **how)
        if answer.code == 124:
            raise PhaseFailed(f"{what}: not done within {timeout_s:.0f} s\n{answer.output}")
        if answer.code:
            raise PhaseFailed(f"{what}: exit code {answer.code}\n{answer.output}")
        return answer.stdout

    def write_file(self, path: Path, text: str) -> None:
        """Write a file as the person, whole or not at all."""
        self.run_checked(
            f"cannot write {path}",
            [sys.executable, "-I", "-c", _PUT, str(path)],
            60,
            given=text.encode(),
        )

    def read_file(self, path: Path, limit: int = 2**20) -> str | None:
        """Read a file as the person; None where there is none."""
        argv = [
            sys.executable,
            "-I",
            "-c",
            (
                "import sys; sys.stdout.write(open(sys.argv[1], "
                "encoding='utf-8').read(int(sys.argv[2])))"
            ),
            str(path),
            str(limit),
        ]
        if not os.path.lexists(path):
            return None
        answer = subprocess.run(
            argv, capture_output=True, text=True, timeout=60, check=False, **self._account()
        )
        return str(answer.stdout) if answer.returncode == 0 else None

    def which(self, program: str) -> str | None:
        """Return the path of a program."""
        return shutil.which(program, path=self.environ.get("PATH"))

    def _account(self) -> dict[str, Any]:
        return (
            {}
            if os.getuid() == self.user.uid
            else {"user": self.user.uid, "group": self.user.gid, "extra_groups": self._groups()}
        )

    def _groups(self) -> list[int]:
        try:
            return os.getgrouplist(self.user.name, self.user.gid)
        except OSError:
            return [self.user.gid]


_PUT = """
import os, sys, tempfile
path = sys.argv[1]
os.makedirs(os.path.dirname(path), exist_ok=True)
handle, temporary = tempfile.mkstemp(dir=os.path.dirname(path))
with os.fdopen(handle, "wb") as out:
    out.write(sys.stdin.buffer.read())
os.chmod(temporary, 0o644)
os.replace(temporary, path)
"""


def find_user_account(name: str) -> UserAccount:
    """Return the person of this name where there is one; else root, with the folder that would be
    the home.
    """
    try:
        known = pwd.getpwnam(name)
    except KeyError:
        return UserAccount("root", os.getuid(), os.getgid(), Path("/home/jupyter"))
    return UserAccount(known.pw_name, known.pw_uid, known.pw_gid, Path(known.pw_dir))


def _to_the_end(
    process: subprocess.Popen[bytes], given: bytes, timeout_s: float
) -> tuple[bytes, bytes, int]:
    try:
        output = process.communicate(given, timeout=timeout_s)
    except subprocess.TimeoutExpired:
        _kill_group(process)
        return (*process.communicate(), 124)
    except BaseException:
        _kill_group(process)
        raise
    return (*output, process.returncode if process.returncode >= 0 else 128 - process.returncode)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    for kind in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, kind)
        except (ProcessLookupError, PermissionError):
            return
        time.sleep(0.5 if kind is signal.SIGTERM else 0)
