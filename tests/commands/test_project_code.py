"""Code and command of a project at a local target: planned, run as a check, compared."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import Any

import pytest

from provision.agent.probe.report_json import expand
from tests.rig import Bench, small_spec

TRAIN = """\
import os, pathlib, sys
from helper import VALUE
pathlib.Path("out").mkdir(exist_ok=True)
if "--fail" in sys.argv:
    for done in range(3):
        sys.stderr.write(f"{done * 50}%|##| {done}/2 [00:00<?, ?it/s]\\r")
    sys.stderr.write("100%|##| 2/2 [00:00<?, ?it/s]\\n")
    raise SystemExit(f"value {VALUE} is not allowed")
if "--sleep" in sys.argv:
    import time
    time.sleep(60)
if "--idle" not in sys.argv:
    pathlib.Path("out/model").write_text("x")
print("loss", VALUE, os.environ["PROVISION_CODE"])
"""


def write(bench: Bench, *words: str, timeout: str = "60s", expect: str = "") -> None:
    command = json.dumps(["python", "train.py", *words])
    expected = f", expect: {expect}" if expect else ""
    bench.spec(
        small_spec(
            "alpha",
            extra=f"code: src\nverify: {{timeout: {timeout}, command: {command}{expected}}}\n",
        )
    )
    source = bench.folder / "src"
    source.mkdir(exist_ok=True)
    (source / "train.py").write_text(TRAIN)
    (source / "helper.py").write_text("VALUE = 1\n")


def report(bench: Bench, target: str = "local") -> dict[str, Any]:
    path = bench.folder / f".provision/reports/spec.{target}/report.json"
    found: dict[str, Any] = expand(json.loads(path.read_bytes()))
    return found


def check(bench: Bench, name: str, target: str = "local") -> dict[str, Any]:
    (found,) = (one for one in report(bench, target)["checks"] if one["id"] == name)
    return dict(found)


def test_the_command_is_a_check_and_programs_start_in_the_folder(bench: Bench) -> None:
    write(bench, expect="{files: [out/model], stdout: 'loss \\d'}")
    done = bench.run("apply", "spec.yaml", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "code: 2 files in " in done.stderr
    assert (check(bench, "V01")["status"], check(bench, "V02")["status"]) == ("pass", "pass")
    ran = bench.run("run", "spec.yaml", "--", "python", "train.py")
    assert ran.stdout.split() == ["loss", "1", str(bench.folder / "src")]


@pytest.mark.long
def test_an_edit_is_planned_and_named(bench: Bench) -> None:
    write(bench, expect="{files: [out/model]}")
    assert bench.run("apply", "spec.yaml", "--yes").returncode == 0
    first = bench.folder / "first.json"
    first.write_bytes((bench.folder / ".provision/reports/spec.local/report.json").read_bytes())
    again = bench.run("plan", "spec.yaml", "--out", "plan.json")
    assert "then quick verification" not in again.stdout, "what the command wrote is not code"

    (bench.folder / "src/helper.py").write_text("VALUE = 2\n")
    stale = bench.run("apply", "spec.yaml", "--yes", "--plan", "plan.json")
    assert (stale.returncode, "changed since it was saved: code" in stale.stderr) == (2, True)
    planned = bench.run("plan", "spec.yaml")
    assert "src/helper.py has changed since it was verified" in " ".join(planned.stdout.split())
    assert bench.run("apply", "spec.yaml", "--yes").returncode == 0
    compared = bench.run(
        "diff", str(first), ".provision/reports/spec.local/report.json", COLUMNS="200"
    )
    assert "the code differs in helper.py" in compared.stdout
    fits = bench.run("fit", "spec.yaml")
    assert "Measured: the declared command, target local" in fits.stdout


@pytest.mark.parametrize(
    ("words", "options", "message"),
    [
        (
            ["--fail"],
            {},
            "ended with exit code 1; expected exit code 0; the last line: value 1 is not allowed",
        ),
        pytest.param(
            ["--idle"],
            {"expect": "{files: [out/model]}"},
            "the command did not write out/model",
            marks=pytest.mark.long,
        ),
        pytest.param(
            [], {"expect": "{stdout: accuracy}"}, "does not match accuracy", marks=pytest.mark.long
        ),
        pytest.param(
            ["--sleep"],
            {"timeout": "4s"},
            "the process died during this check: did not end",
            marks=pytest.mark.long,
        ),
    ],
)
def test_a_command_that_does_not_do_what_is_expected_fails(
    bench: Bench, words: list[str], options: dict[str, str], message: str
) -> None:
    write(bench, *words, **options)
    done = bench.run("apply", "spec.yaml", "--yes")
    assert done.returncode == 1, done.stdout + done.stderr
    failed = check(bench, "V02")
    assert failed["status"] == "fail"
    assert message in failed["message"]
    assert "verify.timeout" in failed["fix"] or "provision why" in failed["fix"]
    if words == ["--fail"]:
        assert "`provision run spec.yaml -- python train.py --fail`" in failed["fix"]
        output = failed["observed"]["output"]
        assert output == "100%|##| 2/2 [00:00<?, ?it/s]\nvalue 1 is not allowed"


def test_the_printed_command_runs_at_one_of_several_targets(bench: Bench) -> None:
    write(bench, "--fail")
    spec = bench.folder / "spec.yaml"
    spec.write_text(spec.read_text() + "targets: {here: {kind: local}, there: {kind: local}}\n")
    assert bench.run("apply", "spec.yaml", "--target", "here", "--yes").returncode == 1
    fix = check(bench, "V02", "here")["fix"]
    command = shlex.split(fix.split("`")[1])
    assert command[1:5] == ["run", "spec.yaml", "--target", "here"]
    done = bench.run(*command[1:])
    assert done.returncode == 1, done.stderr
    assert "value 1 is not allowed" in done.stdout + done.stderr


@pytest.mark.long
def test_a_file_of_an_earlier_run_does_not_count(bench: Bench) -> None:
    write(bench, "--idle", expect="{files: [out/model]}")
    old = bench.folder / "src/out/model"
    old.parent.mkdir()
    old.write_text("old")
    os.utime(old, (0, 0))
    assert bench.run("apply", "spec.yaml", "--yes").returncode == 1
    assert "out/model (not written by this run)" in check(bench, "V02")["message"]


def test_code_that_cannot_be_used_is_refused_with_its_line(bench: Bench) -> None:
    bench.spec(small_spec("alpha", extra="code: missing\n"))
    done = bench.run("lock", "spec.yaml")
    assert done.returncode == 1
    assert "REF006" in done.stderr
    (bench.folder / "missing").mkdir()
    assert bench.run("lock", "spec.yaml").returncode == 0
    (bench.folder / "missing/link").symlink_to(Path("/etc/passwd"))
    done = bench.run("plan", "spec.yaml")
    assert "link is a link out of the folder" in done.stderr


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ("code: /abs\n", "a folder relative to the spec"),
        ("verify: {tier: inventory, command: [x]}\n", "`tier: inventory` does not run a command"),
        ("verify: {expect: {exit: 1}}\n", "`expect` needs a `command`"),
        ("verify: {command: [x], expect: {stdout: '('}}\n", "not a Python regular expression"),
        ("verify: {command: []}\ncode: {path: ., exclude: ['']}\n", "at least 1"),
    ],
)
def test_lint_says_what_cannot_have_an_effect(bench: Bench, extra: str, words: str) -> None:
    bench.spec(small_spec("alpha", extra=extra))
    done = bench.run("lint", "spec.yaml")
    assert done.returncode == 1
    assert words in " ".join(done.stdout.split())


def test_a_kind_that_runs_no_code_refuses_it(bench: Bench) -> None:
    target = "{kind: colab-enterprise, project: my-project, region: us-central1}"
    text = small_spec(
        "alpha", extra=f"code: .\nverify: {{command: [x]}}\ntargets: {{team: {target}}}\n"
    )
    bench.spec(text)
    done = bench.run("lint", "spec.yaml", "--output-format", "concise")
    assert "error SPC009 code on a target of kind colab-enterprise is not" in done.stdout
    assert "error SPC009 verify.command on a target of kind colab-enterprise" in done.stdout
