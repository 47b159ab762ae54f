"""A real terminal: the question, its answers, Ctrl-C, narrow windows, and hostile text."""

from __future__ import annotations

import json
import re
import signal
import sys
from pathlib import Path

import pytest

from tests.rig import Bench, make_index, make_wheel, small_spec

pexpect = pytest.importorskip("pexpect", reason="pexpect is not installed")

BELL = "\x1b]0;pwned\x07"
"""Sets the title of a terminal: no code of ours ever writes it."""
HOSTILE = f"{BELL}\x1b[2J\x1b[41m\u202e"


def at_terminal(bench: Bench, *arguments: str, columns: int = 100, **changes: str):
    """Start `provision WORDS` on a terminal of its own."""
    environment = bench.environment(TERM="xterm-256color", **changes)
    del environment["NO_COLOR"], environment["COLUMNS"]
    argv = bench.argv(*arguments)
    return pexpect.spawn(
        argv[0],
        argv[1:],
        cwd=str(bench.folder),
        env=environment,
        dimensions=(30, columns),
        encoding="utf-8",
        timeout=600,
    )


def answered(terminal, answer: str) -> tuple[int, str]:
    """Answer the question; return the exit code (negative: the signal) and all that was shown."""
    terminal.expect_exact("[y/N] ")
    before = terminal.before
    terminal.send(answer)
    return ended(terminal, before)


def ended(terminal, before: str = "") -> tuple[int, str]:
    terminal.expect(pexpect.EOF)
    shown = before + terminal.before
    terminal.close()
    return terminal.exitstatus if terminal.signalstatus is None else -terminal.signalstatus, shown


def made(bench: Bench) -> list[str]:
    """What there is in the project beside the spec, the home and uv's cache."""
    return sorted(
        str(path.relative_to(bench.folder))
        for path in bench.folder.iterdir()
        if path.name not in ("home", "uv-cache", "spec.yaml")
    )


@pytest.mark.long(after=2)
@pytest.mark.parametrize("answer", ["n\r", "\r", "\x04", "no\r", "maybe\r"])
def test_anything_but_yes_changes_nothing(bench: Bench, answer: str) -> None:
    bench.spec(small_spec("alpha"))
    code, shown = answered(at_terminal(bench, "apply", "spec.yaml"), answer)
    assert code == 2
    assert "Apply these changes?" in shown
    assert "+    environment" in re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert "cancelled: nothing was changed" in shown
    assert made(bench) == []


@pytest.mark.long(after=1)
@pytest.mark.parametrize("answer", ["y\r", "YES\r"])
def test_yes_makes_it_and_destroy_asks_too(bench: Bench, answer: str) -> None:
    bench.spec(small_spec("alpha"))
    code, shown = answered(at_terminal(bench, "apply", "spec.yaml"), answer)
    assert code == 0, shown
    assert "VERIFIED" in shown
    assert "\x1b[?25l" not in shown.rpartition("\x1b[?25h")[2], "the cursor is shown again"
    kept, shown = answered(at_terminal(bench, "destroy", "spec.yaml"), "n\r")
    assert kept == 2
    assert "Remove these resources?" in shown
    assert (bench.own / "envs/spec.local/bin/python").exists()
    code, _ = answered(at_terminal(bench, "destroy", "spec.yaml"), answer)
    assert code == 0
    assert made(bench) == ["spec.lock"]


def test_ctrl_c_at_the_question_leaves_nothing(bench: Bench) -> None:
    bench.spec(small_spec("alpha"))
    code, shown = answered(at_terminal(bench, "apply", "spec.yaml"), "\x03")
    assert code == 130
    assert "Traceback" not in shown
    assert made(bench) == []


def test_a_terminal_that_is_closed_at_the_question_leaves_nothing(bench: Bench) -> None:
    bench.spec(small_spec("alpha"))
    terminal = at_terminal(bench, "apply", "spec.yaml")
    terminal.expect_exact("[y/N] ")
    terminal.kill(signal.SIGHUP)
    code, _ = ended(terminal)
    assert code == 129
    assert made(bench) == []


def test_a_signal_right_before_the_answer_is_waited_for_is_not_lost(tmp_path: Path) -> None:
    # PyErr_SetInterruptEx notes a signal as its handler in C does, and interrupts no system call.
    script = tmp_path / "asks.py"
    script.write_text(
        "import ctypes, signal, threading\n"
        "from provision.cli.console import confirm\n"
        "from provision.cli.signals import Terminated, raise_on_signals\n"
        "raise_on_signals()\n"
        "note = lambda: ctypes.pythonapi.PyErr_SetInterruptEx(int(signal.SIGHUP))\n"
        "threading.Timer(0.3, note).start()\n"
        "try:\n"
        "    confirm('Go on?', yes=False, doing='this')\n"
        "except Terminated as error:\n"
        "    print('ended by', signal.Signals(error.number).name)\n"
    )
    terminal = pexpect.spawn(sys.executable, [str(script)], encoding="utf-8", timeout=60)
    terminal.expect_exact("ended by SIGHUP")
    assert ended(terminal)[0] == 0


@pytest.mark.parametrize("form", ["text", "json"])
def test_the_plan_is_shown_before_the_question(bench: Bench, form: str) -> None:
    bench.spec(small_spec("alpha"))
    _, shown = answered(at_terminal(bench, "apply", "spec.yaml", "--output-format", form), "n\r")
    assert "Plan: 1 to create" in re.sub(r"\x1b\[[0-9;]*m", "", shown)


@pytest.mark.long
def test_a_narrow_terminal_is_kept_to(bench: Bench) -> None:
    bench.spec(small_spec("alpha").replace('"', ""))
    for arguments in (("lint", "spec.yaml"), ("--help",), ("apply", "--help")):
        _, shown = ended(at_terminal(bench, *arguments, columns=60))
        lines = re.sub(r"\x1b\[[0-9;]*m", "", shown).splitlines()
        assert [
            line for line in lines if len(line) > 60 and not line.lstrip().startswith("provision ")
        ] == [], "only what is to be copied whole"
    bench.spec(small_spec("alpha"))
    _, shown = ended(at_terminal(bench, "apply", "spec.yaml", "--yes", columns=60))
    assert "VERIFIED" in shown


def test_notices_and_steps_wrap_between_words(bench: Bench) -> None:
    bench.spec(small_spec("alpha"))
    (bench.folder / "home").mkdir(exist_ok=True)
    _, shown = ended(at_terminal(bench, "plan", "spec.yaml", columns=40))
    # An erased line is not a part of the next one.
    drawn = re.sub(r"\x1b\[[0-9;]*[AGHJK]", "\n", shown)
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", drawn).splitlines()
    rows = [line.rstrip() for line in lines if "/" not in line]
    assert [row for row in rows if len(row) > 40] == []
    assert "done locking: there is no lock yet" in " ".join(" ".join(rows).split())


def test_no_spinner_on_a_dumb_terminal(bench: Bench) -> None:
    bench.spec(small_spec("alpha"))
    terminal = at_terminal(bench, "lock", "spec.yaml")
    _, fancy = ended(terminal)
    assert "\x1b[" in fancy
    (bench.folder / "spec.lock").unlink()
    environment = bench.environment(TERM="dumb")
    dumb = pexpect.spawn(
        sys.executable,
        ["-m", "provision", "lock", "spec.yaml"],
        cwd=str(bench.folder),
        env=environment,
        encoding="utf-8",
        timeout=600,
    )
    code, shown = ended(dumb)
    assert code == 0
    assert "\x1b" not in shown
    assert "wrote spec.lock" in shown


def hostile_wheel(folder: Path) -> Path:
    """A package that writes to the terminal when imported, and then fails with a message that does
    too.
    """
    code = (
        f"import sys\nprint({HOSTILE!r}, flush=True)\nprint({HOSTILE!r}, file=sys.stderr, "
        f"flush=True)\nraise ImportError({HOSTILE!r} + 'cannot load')\n"
    )
    return make_wheel(folder, "rogue", "1.0", code=code)


@pytest.mark.long(after=1)
@pytest.mark.parametrize("verbose", [[], ["--verbose"]], ids=["short", "verbose"])
def test_what_a_package_writes_does_not_reach_the_terminal(
    bench: Bench, tmp_path: Path, verbose: list[str]
) -> None:
    make_index(tmp_path / "index", (hostile_wheel(tmp_path / "wheels"),))
    bench.spec(small_spec("rogue"))
    code, shown = ended(at_terminal(bench, "apply", "spec.yaml", "--yes", *verbose))
    assert code == 1
    assert "cannot load" in shown
    _harmless(shown)
    _, again = ended(at_terminal(bench, "report", "spec.yaml", "-v"))
    _harmless(again)


@pytest.mark.long(after=2)
@pytest.mark.parametrize(
    "text",
    [
        'gpu: none\npython: "3.11"\nname: "evil\\e]0;pwned\\a\\e[2J"\npackages: [alpha]\n',
        'gpu: none\npython: "3.11"\npackages: ["\\e]0;pwned\\a\\e[2J"]\n',
        'gpu: "\\e]0;pwned\\a"\npython: "3.11"\npackages: [alpha]\n',
        'gpu: none\npython: "3.11"\n"\\e]0;pwned\\a": 1\npackages: [alpha]\n',
        (
            'gpu: none\npython: "3.11"\npackages: [alpha]\nenv: {A: "\\e]0;pwned\\a"}\npaths: '
            '{data: "/nowhere/\\e]0;pwned\\a"}\ntraining: {framework: none}\n'
        ),
        "gpu: none # \u202e\npython: 3.11\npackages: [alpha]\n",
    ],
    ids=["name", "package", "gpu", "key", "values", "comment"],
)
def test_what_a_spec_holds_does_not_reach_the_terminal(bench: Bench, text: str) -> None:
    bench.spec(text)
    for arguments in (
        ["lint", "spec.yaml"],
        ["apply", "spec.yaml", "--yes", "-v"],
        ["plan", "spec.yaml"],
    ):
        _, shown = ended(at_terminal(bench, *arguments))
        assert shown.strip()
        _harmless(shown)


def test_what_an_index_says_does_not_reach_the_terminal(bench: Bench, tmp_path: Path) -> None:
    folder = tmp_path / "index/rogue"
    folder.mkdir(parents=True)
    name = f"rogue-1.0{BELL}-py3-none-any.whl"
    (folder / "index.html").write_text(
        f'<a href="{name}">{name}</a><a href="rogue-2.0.tar.gz">{HOSTILE}</a><a '
        'href="\x1b]0;pwned\x07">x</a>'
    )
    bench.spec(small_spec("rogue"))
    code, shown = ended(at_terminal(bench, "lock", "spec.yaml"))
    assert code != 0
    _harmless(shown)


@pytest.mark.long
def test_a_file_name_does_not_reach_the_terminal(bench: Bench) -> None:
    name = f"evil{BELL.replace('/', '')}.yaml"
    (bench.folder / name).write_text(small_spec("alpha"))
    for arguments in (
        ["lint", name],
        ["lock", name],
        ["lock", name, "--check"],
        ["plan", name],
        ["apply", name, "--yes"],
        ["status", name],
        ["report", name],
        ["destroy", name, "--yes"],
        ["init", f"new{name}"],
        ["lint", f"no{name}"],
        ["lint", f"--{BELL}"],
        [BELL],
    ):
        _, shown = ended(at_terminal(bench, *arguments))
        assert shown.strip(), arguments
        _harmless(shown)


@pytest.mark.long
def test_what_lies_in_a_report_or_state_does_not_reach_the_terminal(applied: Bench) -> None:
    report = applied.own / "reports/spec.local/report.json"
    document = json.loads(report.read_text())
    document["subject"]["created_utc"] = HOSTILE
    report.write_text(json.dumps(document))
    for arguments in (
        ["apply", "spec.yaml", "--yes"],
        ["report", "spec.yaml", "-v"],
        ["status", "spec.yaml"],
    ):
        _, shown = ended(at_terminal(applied, *arguments))
        assert shown.strip()
        _harmless(shown)


def _harmless(shown: str) -> None:
    assert "\x1b]0;" not in shown
    assert "\x07" not in shown
    assert "\x1b[2J" not in shown
    assert "\x1b[41m" not in shown
    assert "\u202e" not in shown
