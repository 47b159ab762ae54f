"""provision report repro for what the report alone does not hold: from the folder it lies in, or
from the spec that it answers.
"""

from __future__ import annotations

import ast
import json
import platform
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import fork_server

ROOT = Path(__file__).parents[2]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The quickstart with its lock, and a report of it in which an option of the training has
    failed.
    """
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        pytest.skip("the report is of Linux on x86_64")
    for name in ("quickstart.yaml", "quickstart.lock"):
        shutil.copy(ROOT / "specs" / name, tmp_path / name)
    lock = json.loads((tmp_path / "quickstart.lock").read_bytes())
    report = json.loads((ROOT / "tests/reports/recorded/quickstart.json").read_bytes())
    report["lock"]["environment_digest"] = lock["environments"]["linux-x86_64-cpu"]["digest"]
    report["checks"] = [
        {"id": "R07", "title": "options", "status": "fail", "message": "lost", "group": "training"}
    ]
    (tmp_path / "report.json").write_text(json.dumps(report))
    return tmp_path


def asked(folder: Path, *words: str) -> tuple[int, str, str]:
    done = fork_server.run(
        [*fork_server.ARGV, "report", "repro", *words], cwd=folder, capture_output=True, text=True
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr


def case_of(program: str) -> dict[str, Any]:
    (found,) = (
        node.value
        for node in ast.parse(program).body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "CASE"
    )
    case: dict[str, Any] = ast.literal_eval(found)
    return case


def test_a_report_alone_says_how_to_get_the_rest(project: Path) -> None:
    code, out, err = asked(project, "report.json", "R07")

    assert (code, out) == (2, "")
    assert "the report alone is not sufficient to reproduce R07" in err
    assert "--spec SPEC --target NAME" in " ".join(err.split())


def test_the_spec_that_a_report_answers_says_the_rest(project: Path) -> None:
    code, out, err = asked(project, "report.json", "R07", "--spec", "quickstart.yaml")

    assert code == 0, err
    case = case_of(out)
    assert (case["check"], case["expectations"]["training"]["framework"]) == ("R07", "hf-trainer")
    assert case["expectations"]["python"] == {"version": "3.11", "prefix": ""}


def test_a_spec_that_moved_on_is_not_the_one_that_the_report_answers(project: Path) -> None:
    report = json.loads((project / "report.json").read_bytes())
    report["lock"]["environment_digest"] = "sha256:another"
    (project / "report.json").write_text(json.dumps(report))
    code, _, err = asked(project, "report.json", "R07", "--spec", "quickstart.yaml")

    assert code == 2
    assert "its `environment_digest` differs from the lock's" in err


def test_a_stored_report_is_answered_by_its_spec(project: Path) -> None:
    stored = project / ".provision/reports/quickstart.local"
    stored.mkdir(parents=True)
    shutil.copy(project / "report.json", stored)
    code, out, err = asked(project, "quickstart.yaml", "R07")

    assert code == 0, err
    assert case_of(out)["check"] == "R07"
    (project / "quickstart.lock").unlink()
    code, _, err = asked(project, "quickstart.yaml", "R07")
    assert (code, "provision lock quickstart.yaml" in err) == (1, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("quickstart.yaml", "R07", "--spec", "quickstart.yaml"),
            "--spec cannot be used when REPORT is itself a spec",
        ),
        (("report.json", "R07", "--spec", "nothing.yaml"), "nothing.yaml"),
        (
            ("report.json", "R07", "--spec", "quickstart.yaml", "--target", "there"),
            "the spec has no target `there`",
        ),
    ],
)
def test_words_that_do_not_fit(project: Path, words: tuple[str, ...], said: str) -> None:
    code, out, err = asked(project, *words)

    assert (code, out, said in err) == (2, "", True), err
