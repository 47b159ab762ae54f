"""provision parity of two captures, descriptions of machines or reports: without a spec."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from provision.commands.shared.snapshot_diff import diff_snapshots
from provision.verification import read_report
from provision.verification.diff.snapshot import read_snapshot
from provision.verification.parity_model import ReportStanding, StatementResult
from provision.verification.snapshot_parity import evaluate_documents
from provision.views import parity as view
from tests.captures.pairs import Pair, load_pairs
from tests.rig import Bench

REPORT = Path(__file__).parents[1] / "reports" / "recorded" / "quickstart.json"
PAIRS = {pair.name: pair for pair in load_pairs()}


def write(bench: Bench, pair: Pair) -> None:
    (bench.folder / "laptop.json").write_bytes(pair.a)
    (bench.folder / "colab.json").write_bytes(pair.b)


@pytest.mark.long
def test_the_result_is_that_of_diff_for_every_pair() -> None:
    for pair in PAIRS.values():
        for first, second in ((pair.a, pair.b), (pair.b, pair.a)):
            a, b = (
                read_snapshot(content, "x.json", name)
                for content, name in ((first, "a"), (second, "b"))
            )
            compared = diff_snapshots(a, b, None)
            found = evaluate_documents(compared, (None, None))
            assert found.result is StatementResult.DIFFERS, pair.name
            shown = " ".join(one.why for one in found.statements)
            assert compared.causes[0].message in shown, pair.name
        same = diff_snapshots(a, a, None)
        assert evaluate_documents(same, (None, None)).result is not StatementResult.DIFFERS


def test_a_difference_is_a_statement_with_its_reason(bench: Bench) -> None:
    write(bench, PAIRS["accelerate-missing"])
    done = bench.run("parity", "laptop.json", "colab.json")

    assert done.returncode == 1, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "laptop, colab: they differ: packages"
    assert "laptop       capture, unverified" in lines
    assert any(line.startswith("equal        Python; observed: ") for line in lines)
    text = " ".join(done.stdout.split())
    assert "DIFFERS packages; observed: " in text
    assert "accelerate" in text
    assert "equal torch build; observed: 2.6.0+cu124, CUDA 12.4 on both" in text
    assert "to prove" not in done.stdout


def test_equal_captures_end_with_0_although_harmless_differences_exist(bench: Bench) -> None:
    document = json.loads(PAIRS["accelerate-missing"].a)
    document["packages"]["idna"]["version"] = "3.11"
    content = json.dumps(document).encode()
    write(bench, PAIRS["accelerate-missing"]._replace(b=content))
    done = bench.run("parity", "laptop.json", "colab.json")

    assert done.returncode == 0, done.stdout
    assert done.stdout.startswith("laptop, colab: nothing that matters differs\n")
    assert "1 harmless difference\n" in done.stdout
    assert "harmless     laptop and colab: idna" in done.stdout


def test_what_one_file_does_not_show_is_unproven(bench: Bench) -> None:
    write(bench, PAIRS["home-not-writable"])
    described = next(
        pair for pair in PAIRS.values() if json.loads(pair.a)["schema"] == "provision.env/1"
    )
    document = json.loads(described.a)
    for key in ("host.glibc", "os.version"):
        document["readings"].pop(key)
    (bench.folder / "laptop.json").write_bytes(described.a)
    (bench.folder / "colab.json").write_text(json.dumps(document))
    done = bench.run("parity", "laptop.json", "colab.json")

    assert done.returncode == 3, done.stdout
    assert done.stdout.startswith(
        "laptop, colab: not observed on both: packages, system, variables"
    )
    assert "unproven     system; observed: ubuntu " in done.stdout
    assert "; not observed on colab\n" in done.stdout


def test_the_json_has_the_keys_of_a_parity_with_a_lock(bench: Bench) -> None:
    write(bench, PAIRS["accelerate-missing"])
    done = bench.run("parity", "laptop.json", "colab.json", "--output-format", "json")
    document = json.loads(done.stdout)

    assert list(document) == [
        *("version", "result", "sentence", "targets", "statements", "undeclared")
    ]
    assert document["result"] == "differs"
    assert document["targets"][0] == {
        "target": "laptop",
        "kind": "capture",
        "why": "",
        "prove": "",
        "carried": False,
        "at": "",
        "elsewhere": "",
        "standing": "unverified",
        "identity": None,
    }
    packages = next(one for one in document["statements"] if one["subject"] == "packages")
    assert list(packages) == ["subject", "found", "declared", "observed", "why"]
    assert (packages["found"], packages["declared"]) == ("differs", "")
    assert {*packages["observed"]} == {"laptop", "colab"}
    markdown = bench.run("parity", "laptop.json", "colab.json", "--output-format", "markdown")
    assert "| packages | DIFFERS |" in markdown.stdout


def test_a_report_keeps_its_verdict_and_a_modified_one_proves_nothing() -> None:
    content = REPORT.read_bytes()
    report = read_report(content, "r.json")
    capture = read_snapshot(PAIRS["accelerate-missing"].a, "c.json", "capture")
    compared = diff_snapshots(read_snapshot(content, "r.json", "report"), capture, None)
    found = evaluate_documents(compared, (report, None))
    assert found.targets[0].standing is ReportStanding(report.verdict)
    assert view.to_json(found)["targets"][0]["identity"] == report.identity

    document = json.loads(content)
    next(row for row in document["readings"] if row["key"] == "host.kernel")["value"] = "6.0"
    forged = json.dumps(document).encode()
    side = read_snapshot(forged, "r.json", "report")
    again = diff_snapshots(side, read_snapshot(content, "o.json", "original"), None)
    found = evaluate_documents(again, (read_report(forged, "r.json"), report))
    assert found.targets[0].standing is ReportStanding.DAMAGED
    assert {one.result for one in found.statements} == {StatementResult.UNPROVEN}
    assert {one.why for one in found.statements} >= {"report was modified"}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("laptop.json",), "expected one spec, or two .json files"),
        (("laptop.json", "spec.yaml"), "expected one spec, or two .json files"),
        (("laptop.json", "colab.json", "colab.json"), "expected one spec, or two"),
        (("laptop.json", "colab.json", "--sandbox"), "expected one spec, or two"),
        (("laptop.json", "laptop.json"), "are the same file"),
        (("laptop.json", "none.json"), "none.json"),
        (("laptop.json", "cut.json"), "cut.json is damaged"),
        (("laptop.json", "new.json"), "provision.capture/9, which this version cannot read"),
        (("none.yaml",), "none.yaml"),
    ],
)
def test_bad_input_is_refused(bench: Bench, words: tuple[str, ...], says: str) -> None:
    write(bench, PAIRS["accelerate-missing"])
    text = (bench.folder / "colab.json").read_text()
    (bench.folder / "cut.json").write_text(text[:900])
    (bench.folder / "new.json").write_text(text.replace("capture/1", "capture/9"))
    done = bench.run("parity", *words)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr
