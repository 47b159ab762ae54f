"""`run` and its record, as a person meets them."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from provision.adapters import RealSystem
from provision.agent.probe.report_json import canonical_digest, to_canonical_json
from provision.cli.run import print_run_summary
from provision.commands.run import run
from provision.commands.shared.load import load_spec
from tests.applied_project import apply_once
from tests.rig import Bench, small_spec

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="runs are recorded only on Linux")


@pytest.fixture
def made(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    text = small_spec("alpha", extra="secrets: {MY_TOKEN: {env: MY_TOKEN}}\n")
    return apply_once(
        tmp_path_factory, bench, "applied-with-a-secret", text, MY_TOKEN="s3cret-value"
    )


def records(bench: Bench) -> list[Path]:
    return sorted((bench.own / "reports/spec.local/runs").glob("*.json"))


def test_a_run_is_recorded_told_and_shown(made: Bench) -> None:
    (made.folder / "train.py").write_text("import sys; print(sys.argv[1]); sys.exit(5)")
    done = made.run(
        "run",
        "spec.yaml",
        "--",
        "python",
        "train.py",
        "--token=s3cret-value",
        MY_TOKEN="s3cret-value",
    )
    assert (done.returncode, done.stdout) == (5, "--token=s3cret-value\n")
    (line,) = done.stderr.splitlines()
    assert line.startswith("provision: peak RAM ")
    assert line.endswith(" s (details: provision report run spec.yaml --target local)")
    (record,) = records(made)
    text = record.read_text()
    assert "s3cret-value" not in text
    assert str(made.folder) not in text
    assert record.stat().st_mode & 0o077 == 0
    told = json.loads(text)
    assert told["program"] == {"name": "python", "script": "train.py", "arguments": 2}
    assert "exit code 5" in made.run("report", "run", "spec.yaml").stdout
    assert (
        json.loads(made.run("report", "run", "spec.yaml", "--output-format", "json").stdout)[
            "ended"
        ]["code"]
        == 5
    )
    assert made.run("report", "run", "spec.yaml", "--html", "run.html").returncode == 0
    assert (
        "Resources of a run: python train.py, target local of spec"
        in (made.folder / "run.html").read_text()
    )
    assert made.run("report", "run", str(record)).stdout.startswith(
        "python train.py, target local of spec"
    )


def test_no_monitor_writes_nothing_and_says_nothing(made: Bench) -> None:
    done = made.run(
        "run",
        "spec.yaml",
        "--no-monitor",
        "--",
        "python",
        "-c",
        "import os; print(os.environ.get('PYTHONPATH'))",
        MY_TOKEN="t0ken-value",
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "None\n", "")
    assert records(made) == []
    missing = made.run("report", "run", "spec.yaml")
    assert missing.returncode == 2
    assert "provision run spec.yaml --target local -- PROGRAM" in missing.stderr


def test_a_changed_environment_is_reported_before_the_program_starts(made: Bench) -> None:
    def run(code: str, *options: str) -> str:
        words = ("run", "spec.yaml", *options, "--", "python", "-c", code)
        return " ".join(made.run(*words, MY_TOKEN="s3cret-value").stderr.split())

    assert "by hand" not in run("raise SystemExit(3)")
    site = next((made.own / "envs/spec.local/lib").glob("python*/site-packages"))
    (site / "beta-9.dist-info").mkdir()
    restore = "restore it with `provision apply spec.yaml`"
    hint = f"the environment was changed by hand (beta was added); {restore}"
    assert hint in run("", "--no-monitor")
    assert run("import sys; sys.exit('the end')").startswith(f"{hint} the end")
    shutil.rmtree(site / "beta-9.dist-info")
    with (site / "alpha/__init__.py").open("a") as module:
        module.write("x = 1\n")
    edited = run("")
    assert "the environment was changed by hand (alpha: " in edited
    assert "alpha/__init__.py" in edited


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("no-such-program", "it is neither in the environment nor on PATH"),
        (".", "it is a folder"),
        ("./spec.yaml", "the file is not executable"),
    ],
)
def test_what_is_no_program_is_told_with_the_reason(made: Bench, program: str, words: str) -> None:
    done = made.run("run", "spec.yaml", "--", program, MY_TOKEN="t0ken-value")
    assert done.returncode == 2
    assert words in done.stderr
    assert "help:" in done.stderr


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("python", "train.py"), "provision run -- python train.py"),
        (("spec.yaml", "python", "train.py"), "provision run spec.yaml -- python train.py"),
        (("python", "-c", "print('a b')"), "provision run -- python -c "),
        (("train.py",), "provision run -- python train.py"),
    ],
)
def test_a_program_without_the_two_dashes_is_told_where_they_belong(
    bench: Bench, words: tuple[str, ...], meant: str
) -> None:
    bench.spec(small_spec("alpha"), "provision.yaml")
    done = bench.run("run", *words)
    assert done.returncode == 2
    assert meant in " ".join(done.stderr.split())


def test_a_misspelt_option_is_no_program(bench: Bench) -> None:
    for words in (
        ("--targt", "local", "--", "python"),
        ("--targt", "local"),
        ("spec.yaml", "--targt", "local"),
    ):
        told = bench.run("run", *words)
        assert told.returncode == 2
        assert "No such option" in told.stderr
        assert "put the program after `--`" not in told.stderr


@pytest.mark.parametrize(("name", "says"), [("train.py", "python train.py"), ("train", "./train")])
def test_a_file_of_this_folder_is_no_program_of_the_path(made: Bench, name: str, says: str) -> None:
    (made.folder / name).write_text("print('trained')\n")
    done = made.run("run", "spec.yaml", "--", name, MY_TOKEN="t0ken-value")
    assert done.returncode == 2
    assert f"use {says}" in done.stderr


@pytest.mark.parametrize(
    ("platform", "folder", "writable", "says"),
    [
        ("macos-arm64", "runs", True, "only on Linux"),
        ("linux-x86_64", "removed", True, "removed does not exist"),
        ("linux-x86_64", "runs", False, "runs is not writable"),
        ("linux-x86_64", "runs", True, "the monitor ended before writing a record"),
    ],
)
def test_why_a_run_was_not_recorded(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    platform: str,
    folder: str,
    writable: bool,
    says: str,
) -> None:
    (tmp_path / "runs").mkdir()

    class Place(RealSystem):
        def platform(self) -> str:
            return platform

        def is_writable(self, path: Path) -> bool:
            return writable

    print_run_summary(tmp_path / folder / "none.json", "provision report run spec.yaml", Place())
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("provision: this run was not recorded (")
    assert says in line


def test_runs_of_one_second_are_in_order(made: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """`fit` and `status` look at the last one."""
    tokens = iter(["cc", "bb", "aa"])

    class OneSecond(RealSystem):
        def now(self) -> str:
            return "2026-11-20T12:00:00Z"

        def token(self) -> str:
            return next(tokens) * 16

        def run(self, argv, environment, watch=None, *, prefix=None, folder=None) -> int:
            """Hold no lock: a process that did so has to end before the next run."""
            return super().run(argv, environment, watch, folder=folder)

    monkeypatch.setenv("MY_TOKEN", "t0ken-value")
    loaded, system = load_spec(made.folder / "spec.yaml", OneSecond()), OneSecond()
    for count in range(3):
        run(loaded, "local", ("true", *["word"] * count), system, lambda _: None)
    told = [json.loads(record.read_text())["program"]["arguments"] for record in records(made)]
    assert told == [0, 1, 2]


def test_destroy_takes_the_records_along(made: Bench) -> None:
    assert made.run("run", "spec.yaml", "--", "true", MY_TOKEN="t0ken-value").returncode == 0
    assert len(records(made)) == 1
    assert made.run("destroy", "spec.yaml", "--yes").returncode == 0
    assert not made.own.exists()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda text: text[: len(text) // 2], "not valid JSON"),
        (lambda text: text.replace('"code":0', '"code":1'), "damaged or was changed"),
        (
            lambda text: text.replace("provision.run/1", "provision.report/1"),
            "its schema is provision.report/1",
        ),
        (lambda _: "[" * 100_000, "not valid JSON"),
        (lambda _: "[]", "its schema is missing"),
        (
            lambda _: forged({"schema": "provision.run/1", "subject": 7}),
            "subject is missing or has the wrong type",
        ),
    ],
)
def test_a_record_that_is_none_is_said(bench: Bench, change, says: str) -> None:
    whole = forged({"schema": "provision.run/1", "ended": {"code": 0}})
    (bench.folder / "record.json").write_text(change(whole))
    done = bench.run("report", "run", "record.json")
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def forged(body: dict) -> str:
    return to_canonical_json({**body, "digest": canonical_digest(body)})
