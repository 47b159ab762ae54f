"""The instance as the phases use it: its user, folders, programs and files."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..core.process import NOT_STARTED, TIMED_OUT, ProcessResult, run_process
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
    """A phase failed; the first line of the text names what failed."""


@dataclass(frozen=True, slots=True)
class UserAccount:
    """The account that uses JupyterLab."""

    name: str
    uid: int
    gid: int
    home: Path


@dataclass
class WorkbenchInstance:
    """One instance.

    Everything below the user's home is done as that user: root follows no link that a user made.
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
        stdin: str = "",
        folder: Path | None = None,
    ) -> ProcessResult:
        """Run a program to its end, as the user or as root, with few variables.

        Its output without secrets goes to the log and, as stderr, into the result. At the time
        limit its group is stopped.
        """
        inherited = {key: value for key in _VARIABLES if (value := self.environ.get(key))}
        home = self.environ.get("HOME", "/root") if root else str(self.user.home)
        user = "root" if root else self.user.name
        result = run_process(
            argv,
            timeout_s,
            {**inherited, **_QUIET, "HOME": home, "USER": user, **(variables or {})},
            folder or Path("/"),
            stdin=stdin,
            umask=0o022,
            **({} if root else self._account()),
        )
        output = self.redactor.clean(result.stdout + result.stderr)
        if result.code != NOT_STARTED and output.strip():
            sys.stderr.write(re.sub(r"(?m)^", "  ", output.rstrip()) + "\n")
            sys.stderr.flush()
        code = result.code if result.code >= 0 else 128 - result.code
        return ProcessResult(code, result.stdout.strip(), output)

    def run_checked(self, what: str, argv: Sequence[str], timeout_s: float, **options: Any) -> str:
        """Run a program and return its stdout. Raises PhaseFailed with the end of its output."""
        answer = self.run(argv, timeout_s, **options)
        if answer.code == TIMED_OUT:
            raise PhaseFailed(f"{what}: timed out after {timeout_s:.0f} s\n{answer.output_tail}")
        if answer.code:
            raise PhaseFailed(f"{what}: exit code {answer.code}\n{answer.output_tail}")
        return answer.stdout

    def write_file(self, path: Path, text: str) -> None:
        """Write a file atomically as the user."""
        self.run_checked(
            f"cannot write {path}",
            [sys.executable, "-I", "-c", _WRITE_FILE, str(path)],
            60,
            stdin=text,
        )

    def read_file(self, path: Path, limit: int = 2**20) -> str | None:
        """Return the text of a file, read as the user; None if it cannot be read."""
        if not os.path.lexists(path):
            return None
        argv = [sys.executable, "-I", "-c", _READ_FILE, str(path), str(limit)]
        answer = subprocess.run(
            argv, capture_output=True, text=True, timeout=60, check=False, **self._account()
        )
        return str(answer.stdout) if answer.returncode == 0 else None

    def which(self, program: str) -> str | None:
        """Return the path of a program."""
        return shutil.which(program, path=self.environ.get("PATH"))

    def _account(self) -> dict[str, Any]:
        if os.getuid() == self.user.uid:
            return {}
        return {"user": self.user.uid, "group": self.user.gid, "extra_groups": self._groups()}

    def _groups(self) -> list[int]:
        try:
            return os.getgrouplist(self.user.name, self.user.gid)
        except OSError:
            return [self.user.gid]


_READ_FILE = """
import sys
sys.stdout.write(open(sys.argv[1], encoding="utf-8").read(int(sys.argv[2])))
"""
_WRITE_FILE = """
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
    """Return the account with this name, else root's with JupyterLab's default home."""
    try:
        account = pwd.getpwnam(name)
    except KeyError:
        return UserAccount("root", os.getuid(), os.getgid(), Path("/home/jupyter"))
    return UserAccount(account.pw_name, account.pw_uid, account.pw_gid, Path(account.pw_dir))
