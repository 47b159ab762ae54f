"""provision parity: what lock and reports prove equal across targets, told of recorded reports and
of real runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from provision.agent.probe.report_json import canonical_digest, expand, to_canonical_json
from provision.verification import Report, read_report
from provision.verification.diff.compare import compare_reports
from provision.verification.diff.summary import summarize_comparison
from provision.verification.parity import evaluate_parity
from provision.verification.parity_model import (
    DeclaredEnvironment,
    Parity,
    ParityTarget,
    ReportStanding,
    StatementResult,
)
from provision.views import parity as view
from provision.views.diff import report_text
from tests.rig import Bench, make_index, make_wheel, small_spec

RECORDED = Path(__file__).parents[1] / "reports" / "recorded"
CPU = DeclaredEnvironment("3.11", {"torch": "2.13.0+cpu", "transformers": "5.23.0"}, "cpu", None)
CARD = DeclaredEnvironment(
    "3.11", {"torch": "2.13.0+cu130", "transformers": "5.23.0"}, "cu130", "580.65.06"
)


def recorded(name: str, change: Callable[[dict[str, Any]], None] | None = None) -> Report:
    document = expand(json.loads((RECORDED / f"{name}.json").read_bytes()))
    if change is not None:
        change(document)
    report = read_report(json.dumps(document).encode(), name)
    assert report.verdict == document["verdict"]["result"]
    return report


def side(target: str, report: Report | None, declared: DeclaredEnvironment = CPU) -> ParityTarget:
    standing = ReportStanding.MISSING if report is None else ReportStanding(report.verdict)
    return ParityTarget(
        target,
        "local",
        standing,
        declared,
        report,
        "" if report else "it was never verified",
        f"provision apply x --target {target}",
    )


def found(outcome: Parity, subject: str) -> StatementResult:
    return next(one.result for one in outcome.statements if one.subject == subject)


def reading(key: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        rows = [one for one in document["readings"] if one["key"] != key]
        document["readings"] = (
            [*rows, {"key": key, "value": value, "class": "context"}] if value is not ... else rows
        )
        for row in document["readings"]:
            if row["key"].startswith(("torch.", "driver.")):
                row["class"] = "identity"

    return change


def with_code(digest: str, **files: str) -> Callable[[dict[str, Any]], None]:
    """Give a report the readings of code."""

    def change(document: dict[str, Any]) -> None:
        rows = [("code.digest", "identity", digest)]
        rows += [(f"code.file.{name}", "identity-weak", sha) for name, sha in files.items()]
        document["readings"] += [
            {"key": key, "class": kind, "value": value} for key, kind, value in rows
        ]

    return change


def test_the_code_comes_first_and_a_file_is_named() -> None:
    mine = with_code("sha256:aa", train="1", model="2")
    same = evaluate_parity(
        [side("a", recorded("quickstart", mine)), side("b", recorded("quickstart-again", mine))]
    )
    assert (same.statements[0].subject, same.statements[0].result.name) == ("code", "EQUAL")
    edited = with_code("sha256:bb", train="1", model="3")
    other = evaluate_parity(
        [side("a", recorded("quickstart", mine)), side("b", recorded("quickstart-again", edited))]
    )
    first = other.statements[0]
    assert (first.subject, first.result) == ("code", StatementResult.DIFFERS)
    assert first.why == "a and b: the code differs in model"
    unseen = evaluate_parity(
        [side("a", recorded("quickstart", mine)), side("b", recorded("quickstart-again"))]
    )
    assert found(unseen, "code") is StatementResult.UNPROVEN
    reports = [recorded("quickstart", mine), recorded("quickstart-again", edited)]
    compared = compare_reports(reports[0], reports[1], ("a", "b"))
    assert compared.differences[0].key == "code.digest"
    assert "the code differs in model" in summarize_comparison(compared)


def test_two_runs_of_one_environment_are_proven_equal() -> None:
    outcome = evaluate_parity(
        [side("a", recorded("quickstart")), side("b", recorded("quickstart-again"))]
    )
    assert {one.subject: one.result for one in outcome.statements} == dict.fromkeys(
        ("Python", "packages", "torch build", "CUDA of torch", "checks", "training result"),
        StatementResult.EQUAL,
    )
    assert (outcome.result, outcome.exit_code, outcome.undeclared) == (StatementResult.EQUAL, 0, ())


def test_what_was_never_seen_is_not_yet_proven() -> None:
    outcome = evaluate_parity([side("a", recorded("quickstart")), side("b", None)])
    assert {one.result for one in outcome.statements} == {StatementResult.UNPROVEN}
    assert outcome.exit_code == 3
    shown = view.render_text(outcome, False, 100)
    assert "to prove     provision apply x --target b" in shown
    assert "not observed on b" in shown


def test_a_single_target_is_equal_to_nothing() -> None:
    outcome = evaluate_parity([side("a", recorded("quickstart"))])
    assert (outcome.result, outcome.exit_code) == (StatementResult.UNPROVEN, 3)
    shown = " ".join(view.render_text(outcome, False, 100).split())
    assert shown.startswith("a: nothing to compare, because there is no other target")
    assert "as locked Python: 3.11; observed: 3.11.7 on a" in shown
    assert "to compare add another target to `targets` of the spec, or compare two files" in shown
    page = view.render_markdown(outcome)
    for text in (shown, page, json.dumps(view.to_json(outcome)["sentence"])):
        assert "proven" not in text.replace("unproven", "")
    assert "provision parity laptop.json colab.json" in page
    never = evaluate_parity([side("a", None)])
    assert "to prove     provision apply x --target a" in view.render_text(never, False, 100)
    # What differs from the lock is a difference, also without another target.
    failed = evaluate_parity([side("a", recorded("accelerate-too-old"))])
    assert (failed.result, failed.exit_code) == (StatementResult.DIFFERS, 1)


@pytest.mark.parametrize(
    "name", ["accelerate-too-old", "numpy-abi", "small-shm", "shadowed-package"]
)
def test_a_target_that_fails_is_a_proven_difference_with_its_cause(name: str) -> None:
    outcome = evaluate_parity([side("good", recorded("quickstart")), side("bad", recorded(name))])
    assert found(outcome, "checks") is StatementResult.DIFFERS
    assert outcome.exit_code == 1
    checks = next(one for one in outcome.statements if one.subject == "checks")
    assert "works on good, fails on bad" in checks.why
    turned = evaluate_parity([side("bad", recorded(name)), side("good", recorded("quickstart"))])
    assert (
        "works on good, fails on bad"
        in next(one for one in turned.statements if one.subject == "checks").why
    )


def test_a_proven_difference_counts_more_than_what_is_unknown() -> None:
    assert (
        evaluate_parity(
            [
                side("good", recorded("quickstart")),
                side("bad", recorded("numpy-abi")),
                side("none", None),
            ]
        ).exit_code
        == 1
    )


def test_failing_alike_everywhere_is_not_as_declared() -> None:
    outcome = evaluate_parity([side("a", recorded("numpy-abi")), side("b", recorded("numpy-abi"))])
    assert outcome.exit_code == 1


def test_weights_that_cannot_be_equal_are_no_difference() -> None:
    outcome = evaluate_parity(
        [side("a", recorded("quickstart")), side("b", recorded("other-instruction-set"))]
    )
    training = next(one for one in outcome.statements if one.subject == "training result")
    assert training.result is StatementResult.DIFFERS_AS_DECLARED
    assert "ATEN_CPU_CAPABILITY" in training.why
    assert outcome.exit_code == 0


def test_weights_that_differ_with_nothing_to_explain_it_are_a_difference() -> None:
    def change(document: dict[str, Any]) -> None:
        next(one for one in document["readings"] if one["key"] == "train.weights_sha")["value"] = (
            "0" * 64
        )

    outcome = evaluate_parity(
        [side("a", recorded("quickstart")), side("b", recorded("quickstart-again", change))]
    )
    assert found(outcome, "training result") is StatementResult.DIFFERS
    assert outcome.exit_code == 1


@pytest.mark.parametrize("name", ["keras", "jax"])
def test_weights_of_jax_and_keras_are_compared(name: str) -> None:
    def other(document: dict[str, Any]) -> None:
        row(document, "framework.weights_sha")["value"] = "0" * 64

    def elsewhere(document: dict[str, Any]) -> None:
        other(document)
        row(document, "host.cpu_flags")["value"] = "avx"

    def row(document: dict[str, Any], key: str) -> dict[str, Any]:
        return next(one for one in document["readings"] if one["key"] == key)

    outcomes = [
        evaluate_parity([side("a", recorded(name)), side("b", recorded(name, change))])
        for change in (None, other, elsewhere)
    ]
    assert [found(outcome, "training result") for outcome in outcomes] == [
        StatementResult.EQUAL,
        StatementResult.DIFFERS,
        StatementResult.DIFFERS_AS_DECLARED,
    ]
    without_run = [side("a", recorded(name)), side("b", None)]
    assert found(evaluate_parity(without_run), "training result") is StatementResult.UNPROVEN


def test_settings_of_gpu_memory_are_named_in_parity_and_diff() -> None:
    setting = "framework.memory_env.XLA_PYTHON_CLIENT_PREALLOCATE"
    one, other = recorded("jax"), recorded("jax", reading(setting, "false"))
    jax = DeclaredEnvironment("3.11", {"jax": one.values["package.jax"]}, None, None)
    outcome = evaluate_parity([side("colab", one, jax), side("workbench", other, jax)])
    assert outcome.exit_code == 0
    (difference,) = outcome.undeclared
    assert difference == f"colab and workbench: {setting} absent -> false"
    comparison = compare_reports(one, other, ("a", "b"))
    text = report_text.render_text(comparison, color=False, width=200, everything=True)
    assert f"{setting} absent -> false" in text


def test_a_target_that_trained_nothing_leaves_the_result_unproven() -> None:
    def change(document: dict[str, Any]) -> None:
        document["readings"] = [
            one for one in document["readings"] if not one["key"].startswith("train.")
        ]

    outcome = evaluate_parity(
        [side("a", recorded("quickstart")), side("b", recorded("quickstart-again", change))]
    )
    assert found(outcome, "training result") is StatementResult.UNPROVEN
    nowhere = evaluate_parity([side(name, recorded("quickstart", change)) for name in ("a", "b")])
    assert found(nowhere, "training result") is StatementResult.UNPROVEN


def test_a_build_that_is_declared_to_differ_is_as_declared() -> None:
    def change(document: dict[str, Any]) -> None:
        for row in document["readings"]:
            row["value"] = {
                "torch.version": "2.13.0+cu130",
                "package.torch": "2.13.0+cu130",
                "torch.cuda": "13.0",
            }.get(row["key"], row["value"])
        document["readings"].append(
            {"key": "driver.version", "value": "580.82.07", "class": "identity-weak"}
        )

    outcome = evaluate_parity(
        [side("a", recorded("quickstart")), side("b", recorded("quickstart-again", change), CARD)]
    )
    for subject in ("torch build", "CUDA of torch", "driver"):
        assert found(outcome, subject) is StatementResult.DIFFERS_AS_DECLARED
    assert outcome.exit_code == 0
    packages = next(one for one in outcome.statements if one.subject == "packages")
    assert "torch in a separate build per target" in packages.declared


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("580.65.06", StatementResult.DIFFERS_AS_DECLARED),
        ("580.65.05", StatementResult.DIFFERS),
        (..., StatementResult.UNPROVEN),
        ("not-a-version", StatementResult.UNPROVEN),
    ],
)
def test_a_driver_has_to_reach_the_floor_of_the_build(
    version: Any, expected: StatementResult
) -> None:
    outcome = evaluate_parity(
        [
            side("a", recorded("quickstart")),
            side("b", recorded("quickstart", reading("driver.version", version)), CARD),
        ]
    )
    assert found(outcome, "driver") is expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("13.0", StatementResult.DIFFERS_AS_DECLARED),
        ("12.8", StatementResult.DIFFERS),
        (..., StatementResult.UNPROVEN),
    ],
)
def test_the_cuda_of_torch_has_to_be_the_declared_one(
    value: Any, expected: StatementResult
) -> None:
    outcome = evaluate_parity(
        [
            side("a", recorded("quickstart")),
            side("b", recorded("quickstart", reading("torch.cuda", value)), CARD),
        ]
    )
    assert found(outcome, "CUDA of torch") is expected


@pytest.mark.parametrize(
    ("check", "subject"), [("P01", "Python"), ("P02", "packages"), ("T01", "torch build")]
)
@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("fail", StatementResult.DIFFERS),
        ("unknown", StatementResult.UNPROVEN),
        ("skip", StatementResult.UNPROVEN),
    ],
)
def test_each_statement_hangs_on_its_check(
    check: str, subject: str, status: str, expected: StatementResult
) -> None:
    def change(document: dict[str, Any]) -> None:
        next(one for one in document["checks"] if one["id"] == check)["status"] = status

    outcome = evaluate_parity(
        [side("a", recorded("quickstart")), side("b", recorded("quickstart-again", change))]
    )
    assert found(outcome, subject) is expected


def test_a_report_that_could_not_be_judged_leaves_the_checks_unproven() -> None:
    def change(document: dict[str, Any]) -> None:
        document["verdict"]["result"] = "unverified"

    outcome = evaluate_parity(
        [side("a", recorded("quickstart")), side("b", recorded("quickstart-again", change))]
    )
    assert (found(outcome, "checks"), outcome.exit_code) == (StatementResult.UNPROVEN, 3)


def test_differences_that_no_lock_speaks_of_are_told_and_change_nothing() -> None:
    def change(document: dict[str, Any]) -> None:
        next(one for one in document["readings"] if one["key"] == "os.version")["value"] = "13"

    outcome = evaluate_parity(
        [side("a", recorded("quickstart")), side("b", recorded("quickstart-again", change))]
    )
    assert outcome.undeclared == ("a and b: os.version 12 -> 13",)
    assert outcome.exit_code == 0


def test_every_form_is_harmless_and_fits_a_screen() -> None:
    bad = recorded(
        "small-shm",
        lambda one: one["verdict"].update(
            sentence="\x1b]0;x\x07 <script>alert(1)</script> | @someone"
        ),
    )
    outcome = evaluate_parity([side("a", bad), side("b", bad), side("c", None)])
    shown = view.render_text(outcome, False, 100)
    assert len(shown.splitlines()) <= 25
    assert max(map(len, shown.splitlines())) <= 100, shown
    for words in (shown, view.render_markdown(outcome)):
        assert "\x1b" not in words
    assert "<script" not in view.render_markdown(outcome)
    assert json.loads(json.dumps(view.to_json(outcome)))["result"] == "differs"


def test_what_several_targets_showed_is_told_once() -> None:
    shown = view.render_text(
        evaluate_parity(
            [
                side("a", recorded("quickstart")),
                side("b", recorded("quickstart-again")),
                side("c", None),
            ]
        ),
        False,
        200,
    )
    assert "Python: 3.11; observed: 3.11.7 on a and b; not observed on c\n" in shown


def test_simulated_reports_are_said_to_be_simulated() -> None:
    simulated = replace(side("b", recorded("quickstart")), standing=ReportStanding.SIMULATED)
    assert "(simulated: b)" in view.summarize_parity(
        evaluate_parity([side("a", recorded("quickstart")), simulated])
    )


TWO = "targets:\n  local: {kind: local}\n  there: {kind: local}\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    folder = tmp_path_factory.mktemp("parity")
    wheels = tuple(make_wheel(folder / "wheels", "alpha", version) for version in ("1.0", "2.0"))
    (folder / "project/home").mkdir(parents=True)
    bench = Bench(folder / "project", make_index(folder / "index", wheels))
    bench.spec(small_spec("alpha", extra=TWO))
    assert bench.run("parity", "spec.yaml").returncode == 1  # no lock yet
    done = bench.run("apply", "spec.yaml", "--yes", "--target", "local")
    assert done.returncode == 0, done.stderr
    return bench


@pytest.fixture(scope="module")
def proven(made: Bench) -> Bench:
    half = made.run("parity", "spec.yaml")
    assert half.returncode == 3, half.stdout
    assert "local        local, verified on 20" in half.stdout
    assert "there        local, no report: it was never verified" in half.stdout
    assert "to prove     provision apply spec.yaml --target there" in half.stdout
    assert "--target local" not in half.stdout

    assert made.run("apply", "spec.yaml", "--yes", "--target", "there").returncode == 0
    whole = made.run("parity", "spec.yaml", "--output-format", "json")
    assert whole.returncode == 0, whole.stdout
    told = json.loads(whole.stdout)
    assert (told["result"], {one["found"] for one in told["statements"]}) == ("equal", {"equal"})

    page = made.run("parity", "spec.yaml", "--output-format", "markdown")
    assert page.stdout.startswith("### local\\, there\\: parity is proven")
    return made


Change = Callable[[Bench], object]


def simulate(bench: Bench) -> None:
    path = bench.own / "reports/spec.there/report.json"
    document = json.loads(path.read_bytes())
    document["verdict"]["result"], document["subject"]["simulated"] = "simulated", ["the GPU"]
    document["digests"]["report"] = canonical_digest(
        {key: value for key, value in document.items() if key != "digests"}
    )
    path.write_text(to_canonical_json(document))


def judge_by_another(bench: Bench) -> None:
    path = bench.own / "reports/spec.there/report.json"
    document = json.loads(path.read_bytes())
    document["tool"]["probe_sha256"] = "0" * 64
    document["digests"]["report"] = canonical_digest(
        {key: value for key, value in document.items() if key != "digests"}
    )
    path.write_text(to_canonical_json(document))


def forge(bench: Bench) -> None:
    path = bench.own / "reports/spec.there/report.json"
    path.write_text(path.read_text().replace('"context":{', '"context":{"host.more":1,'))


@pytest.mark.parametrize(
    ("change", "said", "code"),
    [
        (lambda _: None, "parity is proven", 0),
        (
            lambda bench: bench.spec(small_spec("alpha<2", extra=TWO)),
            "the spec has changed since the lock was created",
            1,
        ),
        (
            lambda bench: (
                bench.spec(small_spec("alpha<2", extra=TWO)),
                bench.run("lock", "spec.yaml"),
            ),
            "stale: its report is for a different lock",
            3,
        ),
        (
            lambda bench: bench.spec(small_spec("alpha", extra=TWO + "requires: {ram: 1MiB}\n")),
            "stale: the spec or the lock has changed",
            3,
        ),
        (
            lambda bench: (bench.own / "reports/spec.there/report.json").write_text("{"),
            "damaged: the report",
            3,
        ),
        (lambda bench: (bench.own / "state.json").unlink(), "stale: not verified yet", 3),
        (judge_by_another, "stale: its report is from a different version of the probe", 3),
        (forge, "damaged: the report's digest does not match its content", 3),
        (simulate, "simulated: simulated: the GPU", 3),
    ],
)
def test_a_report_counts_for_what_is_declared_now_only(
    proven: Bench, change: Change, said: str, code: int
) -> None:
    files = [
        proven.folder / "spec.yaml",
        proven.folder / "spec.lock",
        proven.own / "state.json",
        proven.own / "reports/spec.there/report.json",
    ]
    before = {file: file.read_bytes() for file in files}
    change(proven)
    try:
        done = proven.run("parity", "spec.yaml")
    finally:
        for file, content in before.items():
            file.write_bytes(content)
    assert done.returncode == code, (done.stdout, done.stderr)
    assert said in " ".join((done.stdout + done.stderr).split())
    assert "Traceback" not in done.stderr
