"""A report comes home: filed when it is of this notebook and follows from itself, refused with
nothing written when not.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from provision.verification.report import MAX_REPORT_BYTES
from tests import fork_server
from tests.notebook_rig import (
    RUNTIMES,
    Home,
    at,
    changed,
    made,
    of_check,
    of_reading,
    probed,
    refused,
    with_colab,
)
from tests.rig import MINOR, Bench, make_index, make_wheel, served


@pytest.mark.long
def test_a_report_from_a_notebook_is_filed_and_ends_the_waiting(home: Home, genuine: bytes) -> None:
    (home.bench.folder / "report (1).json").write_bytes(genuine)
    waiting = home.bench.run("apply", "spec.yaml", "--target", "colab", "--yes")
    assert waiting.returncode == 3
    assert "rendered, not verified: waiting for its report" in waiting.stdout
    assert "provision report add" in waiting.stdout
    assert "colab, rendered, spec.ipynb" in home.bench.run("status", "spec.yaml").stdout
    assert (
        home.bench.run("plan", "spec.yaml", "--target", "colab", "--detailed-exitcode").returncode
        == 2
    )
    done = home.bench.run("report", "add", "report (1).json")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("VERIFIED")
    assert "imported as  spec/colab" in done.stdout
    assert (home.reports / "report.json").read_bytes() == genuine
    assert (home.reports / "report.html").read_text().lower().startswith("<!doctype html>")
    record = home.state["spec/colab#verification"]
    assert (record["verdict"], record["nonce"]) == ("verified", home.nonce)
    before = home.snapshot()
    again = home.bench.run("apply", "spec.yaml", "--target", "colab", "--yes")
    assert again.returncode == 0, again.stdout
    assert "No changes: this is the stored verdict" in again.stdout
    assert (
        home.bench.run("plan", "spec.yaml", "--target", "colab", "--detailed-exitcode").returncode
        == 0
    )
    assert "verified at" in home.bench.run("status", "spec.yaml").stdout.partition("colab  ")[2]
    assert home.snapshot() == before


def test_the_same_report_twice_changes_nothing(home: Home, genuine: bytes) -> None:
    assert home.receive(genuine).fresh
    before = home.snapshot()
    again = home.receive(json.dumps(json.loads(genuine), indent=2).encode())
    assert (again.fresh, again.report.exit_code) == (False, 0)
    assert home.snapshot() == before
    (home.reports / "report.json").write_bytes(b"damaged")
    assert home.receive(genuine).fresh
    assert (home.reports / "report.json").read_bytes() == genuine


def test_standard_input_and_json(home: Home, genuine: bytes) -> None:
    words = home.bench.argv("report", "add", "-", "--spec", "spec.yaml", "--output-format", "json")
    done = fork_server.run(
        words,
        cwd=home.bench.folder,
        env=home.bench.environment(),
        input=genuine,
        capture_output=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["verdict"], told["target"], told["filed"], told["findings"]) == (
        "verified",
        "colab",
        True,
        [],
    )
    assert {"what", "listed", "found"} == set(told["moved"][0])


def test_a_failed_report_is_filed_and_ends_with_1(home: Home, tmp_path: Path) -> None:
    home.bench.spec(home.path.read_text() + "paths: {data: /content/nowhere}\n")
    assert home.bench.run("apply", "spec.yaml", "--target", "colab", "--yes").returncode == 3
    received = home.receive(probed(home, tmp_path / "probe"))
    assert (received.report.verdict, received.report.exit_code) == ("failed", 1)
    assert home.bench.run("apply", "spec.yaml", "--target", "colab", "--yes").returncode == 1


def test_from_the_rendered_cell_through_a_runtime_and_home(bench: Bench, tmp_path: Path) -> None:
    if MINOR not in RUNTIMES:
        pytest.skip(f"no runtime has had Python {MINOR}")
    make_index(tmp_path / "mine", (make_wheel(tmp_path / "wheels", "omega", "1.0"),))
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "runtime")], check=True
    )
    with_uv = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    variables = bench.environment(PROVISION_CELL_BASE=str(tmp_path / "base"), PATH=with_uv)
    with served(tmp_path / "mine") as address:
        source = (
            f"packages: [{{name: omega, index: mine}}]\nindexes: {{mine: {{url: "
            f"'{address}'}}}}\ntraining: {{framework: none}}\n"
        )
        bench.spec(
            f"gpu: none\npython: '{MINOR}'\n{source}targets: {{colab: {{kind: colab, "
            f"runtime: '{RUNTIMES[MINOR]}'}}}}\n"
        )
        assert bench.run("apply", "spec.yaml", "--yes").returncode == 3
        cell = [str(tmp_path / "runtime/bin/python"), str(bench.folder / "spec.colab.py")]
        ran = subprocess.run(
            cell, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=600
        )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    report = (tmp_path / "base/report.json").read_bytes()
    done = bench.run("report", "add", str(tmp_path / "base/report.json"))
    assert done.returncode == 0, done.stderr
    assert (bench.own / "reports/spec.colab/report.json").read_bytes() == report
    assert bench.run("apply", "spec.yaml", "--yes").returncode == 0
    assert (
        "is the status file of the notebook cell, not a report"
        in bench.run("report", "add", str(tmp_path / "base/status.json")).stderr
    )
    again = subprocess.run(
        cell, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=600
    )
    assert "stored report" in again.stdout, again.stdout + again.stderr
    assert (
        "was imported before"
        in bench.run("report", "add", str(tmp_path / "base/report.json")).stdout
    )


@pytest.mark.long
def test_on_top_of_a_runtime_packages_of_others_are_nobodys_business(
    bench: Bench, tmp_path: Path
) -> None:
    if MINOR not in RUNTIMES:
        pytest.skip(f"no runtime has had Python {MINOR}")
    home = made(bench, with_colab("alpha", runtime=RUNTIMES[MINOR], isolation="system"))
    assert home.python is not None
    others = (
        next((home.python.parent.parent / "lib").glob("python*/site-packages"))
        / "other-1.0.dist-info"
    )
    others.mkdir()
    (others / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    content = probed(home, tmp_path / "probe")
    assert json.loads(content)["readings"]["context"]["packages.unlocked"] == ["other 1.0"]
    assert home.receive(content).report.exit_code == 0
    assert (
        "P03 is pass"
        in refused(home, changed(content, of_reading("packages.elsewhere", ["alpha"]))).why
    )


@pytest.mark.long
def test_hostile_words_in_a_report_reach_no_terminal_and_no_page(
    home: Home, genuine: bytes
) -> None:
    words = "\x1b[31m\u202e<script>alert(1)</script>" + "x" * 60_000
    hostile = changed(
        changed(genuine, of_check("P02", message=words, cause=words, fix=words)),
        at("stages", 0, "tail", value=words),
    )
    (home.bench.folder / "r.json").write_bytes(hostile)
    done = home.bench.run("report", "add", "r.json", "-v")
    assert done.returncode == 0, done.stderr
    for text in (done.stdout, done.stderr, (home.reports / "report.html").read_text()):
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert "<script>" not in text or text is done.stdout


def test_what_is_simulated_is_never_verified(home: Home, genuine: bytes, tmp_path: Path) -> None:
    def lie(document: dict[str, Any]) -> None:
        document["subject"]["simulated"] = ["everything"]

    assert (
        "its verdict is verified, but its checks give simulated (simulated: "
        "everything)" in refused(home, changed(genuine, lie)).why
    )
    received = home.receive(probed(home, tmp_path / "probe", simulated=["a machine"]))
    assert (received.report.verdict, received.report.exit_code) == ("simulated", 3)
    assert home.bench.run("apply", "spec.yaml", "--target", "colab", "--yes").returncode == 3


def test_a_report_of_an_earlier_lock_is_old_and_its_verdict_void(
    home: Home, genuine: bytes
) -> None:
    home.receive(genuine)
    home.bench.spec(with_colab("alpha==1.0"))
    assert "the spec has changed since the notebook was created" in refused(home, genuine).what
    done = home.bench.run("apply", "spec.yaml", "--target", "colab", "--yes")
    assert done.returncode == 3, done.stderr
    assert "(verified) is from an earlier notebook" in done.stdout
    status = home.bench.run("status", "spec.yaml").stdout
    assert "verified at" in status
    assert "is from an earlier notebook" in status
    error = refused(home, genuine)
    assert "from a different version of the notebook for spec/colab" in error.what
    assert "its lock digest is" in error.why


def test_a_report_of_other_promises_is_old(home: Home, genuine: bytes) -> None:
    home.bench.spec(home.path.read_text() + "env: {MODE: fast}\n")
    error = refused(home, genuine)
    assert "is for an earlier version of spec/colab" in error.what
    assert home.nonce in error.why


def test_an_older_report_does_not_replace_a_newer_one(home: Home, genuine: bytes) -> None:
    home.receive(genuine)
    filed = (home.reports / "report.json").read_bytes()
    error = refused(
        home, changed(genuine, at("subject", "created_utc", value="2026-01-01T00:00:00Z"))
    )
    assert error.what == "report.json is older than the stored report"
    assert "2026-01-01T00:00:00Z" in error.why
    assert (home.reports / "report.json").read_bytes() == filed
    newer = changed(
        genuine,
        at(
            "subject",
            "created_utc",
            value=json.loads(genuine)["subject"]["created_utc"][:-2] + "9Z",
        ),
    )
    assert home.receive(newer).report.exit_code == 0


def test_the_spec_is_found_by_the_nonce_or_asked_for(
    home: Home, genuine: bytes, tmp_path: Path
) -> None:
    bench = home.bench
    (bench.folder / "r.json").write_bytes(genuine)
    bench.spec(with_colab("alpha").replace("colab:", "far:"), "other.yaml")
    assert bench.run("apply", "other.yaml", "--target", "far", "--yes").returncode == 3
    strange = changed(genuine, at("subject", "nonce", value="e" * 32))
    strange = changed(strange, at("subject", "target", value="nowhere"))
    (bench.folder / "strange.json").write_bytes(strange)
    done = bench.run("report", "add", "strange.json")
    assert done.returncode == 2
    assert "no rendered notebook matches strange.json" in done.stderr
    assert "this folder has notebooks for other, spec" in done.stderr
    assert "--spec" in done.stderr
    assert bench.run("report", "add", "r.json").returncode == 0
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    lost = Bench(elsewhere, bench.index)
    (elsewhere / "r.json").write_bytes(genuine)
    done = lost.run("report", "add", "r.json")
    assert done.returncode == 2
    assert "no spec in this folder has a rendered notebook" in done.stderr
    assert list(elsewhere.iterdir()) == [elsewhere / "r.json"]
    assert lost.run("report", "add", "r.json", "--spec", str(home.path)).returncode == 0


def test_a_target_that_takes_no_report_says_so(home: Home, genuine: bytes) -> None:
    assert "spec/local does not accept reports" in refused(home, genuine, target="local").what
    assert "has no target `nowhere`" in refused(home, genuine, target="nowhere").what


def test_without_a_notebook_nothing_is_filed(home: Home, genuine: bytes) -> None:
    assert home.bench.run("destroy", "spec.yaml", "--target", "colab", "--yes").returncode == 0
    assert "spec/colab" in refused(home, genuine, target="colab").what


def test_files_that_cannot_be_read_end_with_2(home: Home, genuine: bytes) -> None:
    (home.bench.folder / "big.json").write_bytes(b" " * (MAX_REPORT_BYTES + 1))
    for name in ("nowhere.json", ".", "big.json"):
        done = home.bench.run("report", "add", name)
        assert done.returncode == 2, name
        assert "Traceback" not in done.stderr


def test_verify_and_run_say_where_it_is_done(home: Home) -> None:
    done = home.bench.run("verify", "spec.yaml", "--target", "colab")
    assert done.returncode == 2
    assert "can only be verified in its notebook" in done.stderr
    assert "provision report add" in done.stderr
    assert (
        "is a notebook, and programs can run only inside it"
        in home.bench.run("run", "spec.yaml", "--target", "colab", "--", "true").stderr
    )


def test_verify_again_asks_for_another_run_and_keeps_the_verdict(
    home: Home, genuine: bytes
) -> None:
    home.receive(genuine)
    done = home.bench.run("apply", "spec.yaml", "--target", "colab", "--yes", "--verify")
    assert done.returncode == 3
    assert "requested with --verify" in done.stdout
    assert home.bench.run("apply", "spec.yaml", "--target", "colab", "--yes").returncode == 0


def test_files_written_again_keep_the_verdict(home: Home, genuine: bytes) -> None:
    home.receive(genuine)
    (home.bench.folder / "spec.colab.py").unlink()
    assert (
        home.bench.run("plan", "spec.yaml", "--target", "colab", "--detailed-exitcode").returncode
        == 2
    )
    assert home.bench.run("apply", "spec.yaml", "--target", "colab", "--yes").returncode == 0
    assert (home.bench.folder / "spec.colab.py").exists()


@pytest.mark.long
def test_all_targets_end_with_3_until_the_report_is_home(origin: Home, genuine: bytes) -> None:
    done = origin.bench.run("apply", "spec.yaml", "--all", "--yes", "--output-format", "json")
    assert done.returncode == 3, done.stderr
    told = json.loads(done.stdout)
    assert [one["target"] for one in told["results"]] == ["local"]
    (waiting,) = told["waiting"]
    assert (waiting["target"], waiting["notebook"], waiting["nonce"]) == (
        "colab",
        "spec.ipynb",
        origin.nonce,
    )
    assert json.loads(genuine)["subject"]["nonce"] == origin.nonce


def test_destroy_removes_what_was_written_and_what_came_home(home: Home, genuine: bytes) -> None:
    home.receive(genuine)
    assert home.bench.run("destroy", "spec.yaml", "--target", "colab", "--yes").returncode == 0
    assert not home.reports.exists()
    assert not (home.bench.folder / "spec.ipynb").exists()
    assert not [key for key in home.state if key.startswith("spec/colab#")]
