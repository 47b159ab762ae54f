"""Tasks that are shared with forked processes: order, signals, and processes that die."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux forks")

PROGRAM = """
import os, signal, sys, threading, time
from pathlib import Path
from provision.adapters.forked_processes import count_usable_processes, share_tasks
from provision.errors import ExternalError

def note(number):
    with open("pids", "a") as file:
        file.write(f"{os.getpid()}\\n")
    time.sleep(0.02)
    return number * 10
"""


def start(folder: Path, code: str) -> subprocess.Popen[str]:
    # Not in this process: that of the tests may have threads.
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM + code],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def run(folder: Path, code: str) -> str:
    process = start(folder, code)
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 0, stderr
    return stdout


def noted(folder: Path) -> set[int]:
    try:
        return set(map(int, (folder / "pids").read_text().split()))
    except FileNotFoundError:
        return set()


def wait_for_processes(folder: Path, count: int) -> None:
    deadline = time.monotonic() + 60
    while len(noted(folder)) < count:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_results_are_in_the_order_of_the_tasks(tmp_path: Path) -> None:
    out = run(tmp_path, "print(share_tasks(40, note, lambda n: note(n) + 1, 3))")
    results = json.loads(out)
    assert [result // 10 for result in results] == list(range(40))
    assert {result % 10 for result in results} == {0, 1}
    assert len(noted(tmp_path)) == 3


@pytest.mark.parametrize(
    ("task", "why"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", "it was killed by SIGKILL"),
        ("[][0]", "it ended with exit code 1"),
    ],
)
def test_a_process_that_dies_is_an_error(tmp_path: Path, task: str, why: str) -> None:
    code = f"""
try:
    share_tasks(40, note, lambda n: {task}, 3)
except ExternalError as error:
    print(error.what, error.why, error.hint, sep="|")
try:
    os.waitpid(-1, 0)
except ChildProcessError:
    print("no child is left")
"""
    error, end = run(tmp_path, code).splitlines()
    assert error.startswith(f"a process of this command ended before it had finished|{why}|")
    assert "`taskset -c 0 provision ...`" in error
    assert end == "no child is left"


def test_an_exception_ends_the_other_processes(tmp_path: Path) -> None:
    code = """
def fail(number):
    note(number)
    raise ValueError(number)
try:
    share_tasks(1000, fail, note, 3)
except ValueError:
    print("raised")
"""
    assert run(tmp_path, code) == "raised\n"
    assert not any(map(is_running, noted(tmp_path)))


@pytest.mark.parametrize("to_group", [True, False])
def test_ctrl_c_ends_all_processes(tmp_path: Path, to_group: bool) -> None:
    process = start(tmp_path, "share_tasks(1000, note, note, 3)")
    wait_for_processes(tmp_path, 3)
    (os.killpg if to_group else os.kill)(process.pid, signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT
    assert stderr.count("Traceback") == 1  # that of the parent alone
    assert not any(map(is_running, noted(tmp_path)))


def test_the_other_processes_end_if_the_first_is_killed(tmp_path: Path) -> None:
    process = start(tmp_path, "share_tasks(1000, note, note, 3)")
    wait_for_processes(tmp_path, 3)
    process.kill()
    process.communicate(timeout=60)
    deadline = time.monotonic() + 15  # 1000 tasks would take them 10 s more
    while any(map(is_running, noted(tmp_path))):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert (tmp_path / "pids").read_text().count("\n") < 500


def test_processes_are_limited_by_the_affinity_and_by_threads(tmp_path: Path) -> None:
    code = """
print(count_usable_processes() <= len(os.sched_getaffinity(0)))
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
print(count_usable_processes())
"""
    assert run(tmp_path, code).split() == ["True", "1"]
    code = (
        "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); print(count_usable_processes())"
    )
    assert run(tmp_path, code) == "1\n"


def test_fewer_processes_do_all_tasks_if_the_system_refuses_more(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        limits = "os.setgid(65534); os.setuid(65534); "
        tmp_path.chmod(0o777)
    else:
        limits = ""
    code = f"""
import resource
resource.setrlimit(resource.RLIMIT_NPROC, (0, 0)); {limits}
print(share_tasks(5, abs, abs, 3))
"""
    assert run(tmp_path, code) == "[0, 1, 2, 3, 4]\n"
