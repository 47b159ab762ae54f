"""Runs of pytest in copies of the repository, each with its own environment."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from mutation.mutants import SOURCE

ROOT = Path(__file__).parents[2]
MARKERS = "not hf and not network and not browser and not npm and not root and not device"


@dataclass(frozen=True, slots=True)
class Run:
    """A finished pytest process; `code` is None if it was ended at its limit."""

    code: int | None
    output: str
    seconds: float

    @property
    def outcome(self) -> str:
        """Name the outcome of a mutant."""
        return {None: "timeout", 0: "survived", 5: "skipped"}.get(self.code, "killed")

    @property
    def failure(self) -> str:
        """Return the first failing test, or the last line of the output."""
        failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - |$)", self.output, re.MULTILINE)
        return failed[1] if failed else self.output.strip().rpartition("\n")[2][:200]

    @property
    def failing_file(self) -> str:
        """Return the file of the first failing test, or an empty string."""
        file = self.failure.partition("::")[0]
        return file if file.startswith("tests/") else ""


def prepare_copy(folder: Path, commit: str) -> None:
    """Clone the repository, check out the commit and install it with its development tools.

    Raises:
        SystemExit: the environment imports another copy of the package.
    """
    if not folder.exists():
        subprocess.run(["git", "clone", "--quiet", "--no-checkout", ROOT, folder], check=True)
    subprocess.run(["git", "-C", folder, "fetch", "--quiet", ROOT, commit], check=True)
    subprocess.run(
        ["git", "-C", folder, "checkout", "--quiet", "--force", "--detach", commit], check=True
    )
    subprocess.run(
        ["make", "--silent", "-C", folder, ".venv/.developed", f"PYTHON={sys.executable}"],
        check=True,
    )
    ask = [
        str(folder / ".venv/bin/python"),
        "-P",
        "-c",
        "import provision; print(provision.__file__)",
    ]
    imported = subprocess.run(ask, check=True, capture_output=True, text=True).stdout.strip()
    if Path(imported).parent != folder / SOURCE:
        raise SystemExit(f"{folder}/.venv imports {imported}")


def run_pytest(copy: Path, arguments: Sequence[str], limit_s: float) -> Run:
    """Run tests of a copy, then end the processes that they left."""
    mark = str(uuid.uuid4())
    scratch = Path(tempfile.mkdtemp(prefix="mutant-"))
    (scratch / "tmp").mkdir()
    command = [
        str(copy / ".venv/bin/python"),
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-m",
        MARKERS,
    ]
    # The same examples each time, without limits of time and without examples of earlier runs.
    command += ["--hypothesis-profile=ci", f"--basetemp={scratch}/pytest"]
    started = monotonic()
    with (scratch / "output").open("w+", encoding="utf-8", errors="replace") as output:
        streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": output}
        environment = make_environment(copy, scratch / "tmp", mark)
        process = subprocess.Popen(
            [*command, *arguments], cwd=copy, env=environment, start_new_session=True, **streams
        )
        try:
            code = wait(process, mark, limit_s)
        finally:
            end_processes(process.pid, mark)
            process.wait()
        output.seek(0)
        run = Run(code, output.read(), round(monotonic() - started, 1))
    shutil.rmtree(scratch, ignore_errors=True)
    return run


def make_environment(copy: Path, temporary: Path, mark: str) -> dict[str, str]:
    """Return the variables that `make test` sets, with another folder for temporary files."""
    unset = {
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONPATH",
        "VIRTUAL_ENV",
        "REQUIRE",
        "CI",
        "PYTEST_ADDOPTS",
    }
    cache = {
        "UV_CACHE_DIR": "uv",
        "PIP_CACHE_DIR": "pip",
        "HF_HOME": "hf",
        "XDG_DATA_HOME": "share",
        "XDG_CACHE_HOME": "",
    }
    kept = {name: value for name, value in os.environ.items() if name not in unset}
    ours = {name: str(copy / ".cache" / folder) for name, folder in cache.items()}
    ours |= {"TMPDIR": str(temporary), "MUTATION_SAMPLE": mark}
    return kept | ours | {"UV_PYTHON_DOWNLOADS": "never", "OMP_NUM_THREADS": "1"}


def wait(process: subprocess.Popen[bytes], mark: str, limit_s: float) -> int | None:
    """Return the exit code, or None at the limit.

    On Linux, the time that the tests wait for a processor does not count up to the tenfold
    limit, nor does the time that they are paused with this program.
    """
    seen: dict[Path, int] = {}
    passed_s = used_s = 0.0
    while used_s < limit_s and passed_s < 10 * limit_s:
        before, earlier = monotonic(), seen
        with suppress(subprocess.TimeoutExpired):
            return process.wait(1)
        seen = {task: delay for pid in list_processes(mark) for task, delay in list_delays(pid)}
        delayed_s = sum(delay - earlier.get(task, 0) for task, delay in seen.items()) / 1e9
        step_s = min(monotonic() - before, 5.0)
        passed_s += step_s
        used_s += max(0.0, step_s - delayed_s)
    return None


def list_delays(pid: int) -> Iterator[tuple[Path, int]]:
    """Yield the threads of a process and the nanoseconds that each has waited for a processor."""
    for path in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with suppress(OSError):
            yield path, int(path.read_text(encoding="ascii").split()[1])


def list_processes(mark: str) -> Iterator[int]:
    """Yield, on Linux, every process with the mark in its environment."""
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if mark.encode() in path.read_bytes():
                yield int(path.parent.name)


def end_processes(group: int, mark: str) -> None:
    """End a process group and every process with the mark."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
    for pid in list_processes(mark):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def collect_tests(copy: Path) -> dict[str, set[str]]:
    """Return the names of the tests of each file, without those that need a special machine."""
    collected = defaultdict(set)
    for line in run_pytest(copy, ["--collect-only"], 600).output.splitlines():
        if match := re.match(r"(tests/\S+?\.py)::(?:\w+::)*(.+)", line):
            collected[match[1]].add(match[2])
    return dict(collected)
