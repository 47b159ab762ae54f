"""The exit codes that scripts rely on, each from a real run."""

from __future__ import annotations

import subprocess
import sys

import pytest

from provision.cli.signals import Terminated
from tests.rig import Bench, small_spec

CONFLICT = small_spec("beta", "gamma")
WRONG = small_spec("alpha").replace("gpu: none", "gpu: nonesuch-9000x\ncuda: 12.8")


@pytest.mark.parametrize(
    ("text", "arguments", "code"),
    [
        (small_spec("alpha"), ["lint", "spec.yaml"], 0),
        (WRONG, ["lint", "spec.yaml"], 1),
        (WRONG, ["apply", "spec.yaml", "--yes"], 1),
        (small_spec("alpha"), ["lint", "--diff", "spec.yaml"], 0),
        (small_spec("alpha").replace('"', ""), ["lint", "--diff", "spec.yaml"], 1),
        (CONFLICT, ["lock", "spec.yaml"], 1),
        (CONFLICT, ["plan", "spec.yaml"], 1),
        (CONFLICT, ["plan", "spec.yaml", "--detailed-exitcode"], 1),
        (small_spec("alpha"), ["plan", "spec.yaml"], 0),
        (small_spec("alpha"), ["plan", "spec.yaml", "--detailed-exitcode"], 2),
        (small_spec("alpha"), ["plan", "--detailed-exitcode"], 1),
        (small_spec("alpha"), ["plan", "nowhere.yaml", "--detailed-exitcode"], 1),
        (
            small_spec("alpha"),
            ["plan", "spec.yaml", "--detailed-exitcode", "--out", "plan.json"],
            1,
        ),
        (small_spec("alpha"), ["plan", "spec.yaml", "--out", "plan.json"], 2),
        (small_spec("alpha"), ["plan", "spec.yaml", "--locked"], 1),
        (small_spec("alpha"), ["lock", "spec.yaml", "--check"], 1),
        (small_spec("alpha"), ["status", "spec.yaml"], 1),
        (small_spec("alpha"), ["apply", "spec.yaml"], 2),
        (small_spec("alpha"), ["apply", "spec.yaml", "--target", "nowhere", "--yes"], 2),
        (small_spec("alpha"), ["verify", "spec.yaml"], 1),
        (small_spec("alpha"), ["report", "spec.yaml"], 2),
        (small_spec("alpha"), ["report", "nowhere.json"], 2),
        (small_spec("alpha"), ["destroy", "spec.yaml", "--yes"], 0),
        (small_spec("alpha"), ["lint", "nowhere.yaml"], 2),
        (WRONG, ["lint", "nowhere.yaml", "spec.yaml"], 2),
        (small_spec("alpha"), ["init", "-"], 2),
        (small_spec("alpha"), ["init", "mine"], 2),
        (small_spec("alpha"), ["init", "mine.yml"], 0),
        (small_spec("alpha"), ["lint", "--nonsense"], 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_what_a_run_answers(bench: Bench, text: str, arguments: list[str], code: int) -> None:
    bench.spec(text)
    done = bench.run(*arguments)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_init_takes_names_of_specs_only(bench: Bench) -> None:
    done = bench.run("init", "mine")
    assert "must end in .yaml or .yml" in done.stderr
    assert not (bench.folder / "mine").exists()
    assert not bench.own.exists()


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ("ProvisionError('x')", 2),
        ("UsageError('x')", 2),
        ("SourceError('x')", 2),
        ("Refused('x')", 2),
        ("ExternalError('x')", 2),
        ("NetworkError('x')", 2),
        ("StateError('x')", 2),
        ("LockError('x')", 1),
        ("CheckFailed('x')", 1),
        ("PermissionError(13, 'no', '/some/file')", 2),
        ("OSError(28, 'full')", 2),
        ("KeyboardInterrupt()", 130),
        ("Terminated()", 143),
        ("Terminated(1)", 129),
        ("BrokenPipeError(32, 'gone')", 141),
        ("RuntimeError('ours')", 70),
    ],
)
def test_every_error_has_its_code(error: str, code: int, tmp_path) -> None:
    script = (
        "import sys, provision.cli.main as main\nfrom provision.errors import *\nfrom "
        "provision.cli.signals import Terminated\n"
        f"def fail(*_, **__): raise {error}\nmain.app.main = fail\nsys.exit(main.main([]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=600,
        env={"TMPDIR": str(tmp_path), "PATH": "/bin"},
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert issubclass(Terminated, BaseException)
    assert not issubclass(Terminated, Exception), "no handler of errors may swallow it"


def test_py_rattlers_threads_do_not_take_the_exit_code_with_them(bench: Bench) -> None:
    """With py-rattler the process ends without shutting the interpreter down."""
    code = (
        "import sys; {}from provision.cli import run_cli; sys.argv[1:] = ['--version']; run_cli(); "
        "print('taken down')"
    )
    environment = bench.environment()
    for arguments, seen in (("", True), ("import rattler; ", False)):
        done = subprocess.run(
            [sys.executable, "-c", code.format(arguments)],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert (done.stdout.startswith("provision"), "taken down" in done.stdout) == (True, seen), (
            done.stdout
        )
