"""Programs that stages start end with their time limit and with Ctrl-C, all that they started with
them.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from provision.agent.core.process import NOT_STARTED, TIMED_OUT, run_process, stream_process

ENVIRON = {"PATH": os.environ["PATH"]}
GRANDCHILD = "sleep 60 & echo $! > {file}; echo started; wait"


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    state = Path(f"/proc/{pid}/stat")
    return state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z"


def wait_gone(pid: int) -> bool:
    ends = time.monotonic() + 300
    while not gone(pid) and time.monotonic() < ends:
        time.sleep(0.05)
    return gone(pid)


def test_it_gives_code_and_words() -> None:
    answer = run_process(["sh", "-c", "echo out; echo err >&2; exit 3"], 30, ENVIRON)
    assert (answer.code, answer.stdout, answer.stderr, answer.output_tail) == (
        3,
        "out\n",
        "err\n",
        "err",
    )
    assert run_process(["/no/such/program"], 30, ENVIRON).code == NOT_STARTED
    assert stream_process(["/no/such/program"], print, 30, ENVIRON).code == NOT_STARTED


def test_lines_come_as_they_are_said() -> None:
    times: list[tuple[str, float]] = []
    answer = stream_process(
        ["sh", "-c", "echo one; sleep 0.5; echo two; echo three >&2"],
        lambda line: times.append((line, time.monotonic())),
        30,
        ENVIRON,
    )
    assert [line for line, _ in times] == ["one", "two"]
    assert times[1][1] - times[0][1] > 0.3
    assert (answer.code, answer.stderr) == (0, "three\n")


@pytest.mark.long(after=1)
@pytest.mark.parametrize("how", ["ask", "follow"])
def test_the_time_limit_ends_the_whole_group(tmp_path: Path, how: str) -> None:
    argv, began = ["sh", "-c", GRANDCHILD.format(file=tmp_path / "pid")], time.monotonic()
    answer = (
        run_process(argv, 1, ENVIRON)
        if how == "ask"
        else stream_process(argv, lambda _: None, 1, ENVIRON)
    )
    assert answer.code == TIMED_OUT
    assert time.monotonic() - began < 20
    assert wait_gone(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize(
    "how", ["run_process(argv, 60, environ)", "stream_process(argv, print, 60, environ)"]
)
def test_ctrl_c_ends_the_whole_group(tmp_path: Path, how: str) -> None:
    code = (
        f"import os, sys; sys.path.insert(0, {str(Path(__file__).parents[3] / 'src')!r}); "
        "from provision.agent.core.process import run_process, stream_process\n"
        f"argv, environ = ['sh', '-c', {GRANDCHILD.format(file=tmp_path / 'pid')!r}], "
        "dict(os.environ)\n"
        f"try:\n    {how}\nexcept KeyboardInterrupt:\n    print('interrupted', flush=True)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    ends = time.monotonic() + 300
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        assert time.monotonic() < ends
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=600)
    assert "interrupted" in said
    assert wait_gone(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize(
    "how", ["run_process(argv, 60, environ)", "stream_process(argv, print, 60, environ)"]
)
def test_ctrl_c_while_a_program_is_started_leaves_none_behind(tmp_path: Path, how: str) -> None:
    code = (
        "import os, signal, subprocess, sys; sys.path.insert(0, "
        f"{str(Path(__file__).parents[3] / 'src')!r}); from "
        "provision.agent.core.process import run_process, stream_process\n"
        f"argv, environ = ['sh', '-c', {GRANDCHILD.format(file=tmp_path / 'pid')!r}], "
        "dict(os.environ)\n"
        "begin = subprocess.Popen._execute_child\n"
        "def begin_and_interrupt(*given):\n"
        "    begin(*given)\n"
        f"    pid = {str(tmp_path / 'pid')!r}\n"
        "    while not (os.path.exists(pid) and os.path.getsize(pid)): pass\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "subprocess.Popen._execute_child = begin_and_interrupt\n"
        f"try:\n    {how}\nexcept KeyboardInterrupt:\n    print('interrupted', flush=True)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert "interrupted" in done.stdout, done.stderr
    assert gone(int((tmp_path / "pid").read_text())), "it is ended before the interrupt goes on"
