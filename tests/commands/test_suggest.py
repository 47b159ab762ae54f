"""`provision suggest`: what it says, what backs it, and what it answers to words that make no
sense.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from provision.agent.probe.report_json import expand
from provision.commands.suggest import EvidenceSources, suggest_for_options
from provision.facts import load_facts
from provision.suggest.search import SuggestionStatus
from provision.views.suggestions import render_text
from tests import fork_server
from tests.pytorch_rig import PyTorch
from tests.rig import MINOR, TAG, Bench, make_index, make_wheel
from tests.support import require

GOLDEN = Path(__file__).parent.parent / "golden"

V100 = 'gpu: V100\ncuda: "13.0"\npython: "3.12"\npackages: [torch==2.11.0]\n'
CPU = f'gpu: none\npython: "{MINOR}"\npackages: [torch==2.13.*]\n'


def combinations(
    bench: Bench, *words: str, code: int = 0, **variables: str
) -> list[dict[str, Any]]:
    if "--resolve" not in words:
        words = (*words, "--no-resolve")
    done = bench.run("suggest", *words, "--output-format", "json", **variables)
    assert done.returncode == code, done.stdout + done.stderr
    return list(json.loads(done.stdout)["combinations"])


@pytest.fixture
def cpu_index(tmp_path: Path) -> str:
    return make_index(
        tmp_path / "cpu",
        (
            make_wheel(
                tmp_path / "c", "torch", "2.13.0+cpu", tag=f"{TAG}-{TAG}-manylinux_2_28_x86_64"
            ),
        ),
    )


def test_what_a_person_sees(bench: Bench) -> None:
    bench.spec(V100)
    done = bench.run("suggest", "spec.yaml", "--most", "1", "--no-resolve")
    assert done.returncode == 0
    assert done.stdout.splitlines()[:6] == [
        "1 combination without errors, for spec.yaml",
        "",
        "1  Python 3.12, torch 2.11.0, CUDA 12.6  [rules only]",
        '     cuda: "13.0" -> "12.6"',
        "     exactly: torch==2.11.0",
        "     gives up cuda 13.0",
    ]
    assert "--no-resolve" in done.stdout


@pytest.mark.parametrize(
    ("evidence", "headline"),
    [
        ((SuggestionStatus.RULES, SuggestionStatus.RESOLVED), "2 combinations without errors, "),
        (
            (SuggestionStatus.RESOLVED, SuggestionStatus.REFUSED),
            "1 combination without errors; 1 combination rejected after resolving, ",
        ),
        (
            (SuggestionStatus.REFUTED, SuggestionStatus.REFUSED),
            "No combination without errors; 2 combinations rejected after resolving, ",
        ),
    ],
)
def test_a_refused_combination_is_not_one_without_errors(
    evidence: tuple[SuggestionStatus, ...], headline: str
) -> None:
    sources = EvidenceSources(load_facts(), None, print, offline=True)
    found = suggest_for_options({"gpu": "L4"}, sources, most=2)
    changed = [
        assessed._replace(evidence=status)
        for assessed, status in zip(found.combinations, evidence, strict=True)
    ]
    shown = render_text(found._replace(combinations=tuple(changed)), False, 100)
    assert shown.startswith(f"{headline}for gpu L4\n")


def test_without_a_spec(bench: Bench) -> None:
    found = combinations(
        bench, "--gpu", "V100", "--transformers", "5.13", "--python", "3.12", "--most", "2"
    )
    assert {one["python"] for one in found} == {"3.12"}
    assert all("transformers[torch]==5.13.1" in one["packages"] for one in found)
    assert {one["evidence"] for one in found} == {"rules only"}


def test_what_is_suggested_lints_clean(bench: Bench) -> None:
    for one in combinations(bench, "--gpu", "V100", "--transformers", "5.13"):
        listed = json.dumps(one["packages"])
        bench.spec(
            f'gpu: V100\ncuda: "{one["cuda"]}"\npython: "{one["python"]}"\npackages: {listed}\n',
            "made.yaml",
        )
        done = bench.run("lint", "made.yaml")
        assert done.returncode == 0, done.stdout


def test_errors_that_stay_end_with_1(bench: Bench) -> None:
    bench.spec(V100 + "paths: {data: data}\n")
    done = bench.run("suggest", "spec.yaml", "--no-resolve")
    assert done.returncode == 1
    assert "Errors that changing versions cannot fix:\n  REF101 " in done.stdout


def test_uv_is_asked(bench: Bench, cpu_index: str) -> None:
    bench.spec(CPU)
    (first, *_) = combinations(
        bench, "spec.yaml", "--resolve", "--most", "1", PROVISION_INDEX_PYTORCH_CPU=cpu_index
    )
    assert (first["evidence"], first["note"]) == ("resolved by uv", "1 package")


def test_what_uv_refuses_is_said(bench: Bench, cpu_index: str) -> None:
    bench.spec(CPU.replace("2.13.*]", "2.13.*, alpha, nowhere-to-be-found]"))
    (first,) = combinations(
        bench,
        "spec.yaml",
        "--resolve",
        "--most",
        "1",
        code=1,
        PROVISION_INDEX_PYTORCH_CPU=cpu_index,
    )
    assert first["evidence"] == "uv finds no set of versions"
    assert "nowhere-to-be-found" in first["note"]


def test_an_index_out_of_reach_leaves_the_rules_and_ends_with_2(bench: Bench) -> None:
    bench.spec(CPU)
    done = bench.run(
        "suggest",
        "spec.yaml",
        "--resolve",
        "--most",
        "2",
        PROVISION_INDEX_PYTORCH_CPU="http://127.0.0.1:9/simple",
    )
    assert done.returncode == 2
    assert (
        done.stdout.count("[rules only]\n     uv could not resolve it\n")
        == done.stdout.count("[rules only]")
        > 0
    )
    assert done.stderr.count("error: a package index could not be reached") == 1
    assert "help: " in done.stderr


def test_without_a_network_the_rules_decide_and_it_is_said(bench: Bench) -> None:
    bench.spec(CPU)
    index = {"PROVISION_INDEX_PYTORCH_CPU": "http://127.0.0.1:9/simple"}
    for words, note in (
        ((), "not resolved: a package index cannot be reached"),
        (("--offline",), "not resolved: offline"),
    ):
        done = bench.run("suggest", "spec.yaml", "--most", "2", *words, **index)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count(note) == done.stdout.count("[rules only]") >= 1
        assert "error" not in done.stderr


def test_what_uv_refuses_is_no_headline(bench: Bench, cpu_index: str) -> None:
    bench.spec(CPU.replace("2.13.*]", "2.13.*, nowhere-to-be-found]"))
    done = bench.run("suggest", "spec.yaml", PROVISION_INDEX_PYTORCH_CPU=cpu_index)
    assert done.returncode == 1
    assert done.stdout.startswith("No combination without errors; ")
    assert "[uv finds no set of versions]" in done.stdout


def test_a_cache_that_lacks_something_refutes_nothing(bench: Bench, cpu_index: str) -> None:
    bench.spec(CPU)
    done = bench.run(
        "suggest",
        "spec.yaml",
        "--resolve",
        "--offline",
        "--most",
        "1",
        PROVISION_INDEX_PYTORCH_CPU=cpu_index,
        PROVISION_INDEX_PYPI="http://127.0.0.1:9/simple",
    )
    assert "uv finds no set of versions" not in done.stdout


def test_warnings_of_what_nobody_linted_are_shown(bench: Bench) -> None:
    said = bench.run(
        "suggest", "--gpu", "V100", "--precision", "bf16", "--most", "1", "--no-resolve"
    )
    assert (said.returncode, "warning GPU004" in said.stdout) == (0, True)
    assert (
        "unknown GPU001"
        in bench.run("suggest", "--gpu", "L44", "--most", "1", "--no-resolve").stdout
    )


def test_apple_silicon(bench: Bench) -> None:
    assert combinations(bench, "--gpu", "mps", "--most", "1")[0]["cuda"] == "auto"


def test_a_report_beside_the_spec_backs_what_it_saw_and_nothing_else(bench: Bench) -> None:
    bench.spec(CPU)
    readings = {
        "python.minor": MINOR,
        "torch.cuda": None,
        "package.torch": "2.13.0+cpu",
        "gpu.compute_capability": None,
    }
    kept = bench.folder / ".provision/reports/spec.local"
    kept.mkdir(parents=True)
    changes: dict[str, Any]
    for changes, verdict, expected in (
        ({}, "verified", "verified on a device"),
        ({}, "failed", "rules only"),
        ({"package.torch": "2.12.0+cpu"}, "verified", "rules only"),
        ({"torch.cuda": "12.6"}, "verified", "rules only"),
        ({"gpu.compute_capability": "7.5"}, "verified", "rules only"),
        ({"python.minor": "3.9"}, "verified", "rules only"),
    ):
        seen = [
            {"key": key, "value": value, "class": "identity"}
            for key, value in {**readings, **changes}.items()
        ]
        parts: dict[str, Any] = {
            "subject": {},
            "checks": [],
            "stages": [],
            "digests": {},
            "spec": {},
            "lock": {},
        }
        document = {
            "schema": "provision.report/1",
            **parts,
            "readings": seen,
            "verdict": {"result": verdict, "sentence": ""},
        }
        (kept / "report.json").write_text(json.dumps(document))
        assert combinations(bench, "spec.yaml", "--most", "1")[0]["evidence"] == expected, changes
    (kept / "report.json").write_text("{")
    assert combinations(bench, "spec.yaml", "--most", "1")[0]["evidence"] == "rules only"


@pytest.mark.hf
def test_a_real_verification_backs_its_own_spec(quickstart: Path, bench: Bench) -> None:
    (first,) = combinations(bench, str(quickstart / "quickstart.yaml"), "--most", "1")
    assert first["evidence"] in ("verified on a device", "rules only")
    held = expand(
        json.loads((quickstart / ".provision/reports/quickstart.local/report.json").read_text())
    )
    torch = next(
        one["value"] for one in held["readings"] if one["key"] == "package.torch"
    ).partition("+")[0]
    transformers = next(
        one["value"] for one in held["readings"] if one["key"] == "package.transformers"
    )
    pinned = (
        (quickstart / "quickstart.yaml")
        .read_text()
        .replace("torch==2.13.*", f"torch=={torch}")
        .replace("transformers[torch]>=5.13", f"transformers[torch]=={transformers}")
    )
    (quickstart / "pinned.yaml").write_text(pinned)
    assert (
        combinations(bench, str(quickstart / "pinned.yaml"), "--most", "1")[0]["evidence"]
        == "verified on a device"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--torch", "2.9"), "needs --gpu"),
        (("spec.yaml", "--gpu", "L4"), "--gpu cannot be combined with a spec"),
        (("--gpu", "L4:x"), "expected the number of GPUs after the colon"),
        (("--gpu", "L4", "--torch", "frog"), "--torch frog is not a version"),
        (("--gpu", "L4", "--python", "3"), "python `3` is not a Python version"),
        (
            ("--gpu", "L4", "--cuda", "12"),
            "cuda `12` is not auto, none, or a CUDA version with two parts",
        ),
        (("--gpu", ""), "gpu"),
        (("missing.yaml",), "missing.yaml"),
    ],
)
def test_words_that_make_no_sense(bench: Bench, words: tuple[str, ...], said: str) -> None:
    bench.spec(V100)
    done = bench.run("suggest", *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_spec_of_which_only_a_guess_can_be_read_gets_no_suggestion(bench: Bench) -> None:
    bench.spec(f"gpu: none\n{V100}")
    done = bench.run("suggest", "spec.yaml")
    assert (done.returncode, done.stdout) == (1, "")
    assert "YML002" in done.stderr


def test_a_spec_that_cannot_be_understood(bench: Bench) -> None:
    bench.spec("gpu: L4\npython: 3.10\npackages: []\n")
    done = bench.run("suggest", "spec.yaml")
    assert done.returncode == 1
    assert "error[YML003]" in done.stderr
    assert "the spec has errors" in done.stderr


@pytest.mark.long
@pytest.mark.network
def test_what_is_suggested_for_a_v100_lints_clean_and_uv_resolves_it(
    tmp_path: Path, pytorch: PyTorch
) -> None:
    """PyTorch's own index need not be in reach: the rig's wheels have the same needs."""
    spec = tmp_path / "spec.yaml"
    shutil.copy(GOLDEN / "v100-cu130" / "spec.yaml", spec)
    line = [*fork_server.ARGV]
    variables = {**os.environ, **pytorch.variables()}
    done = subprocess.run(
        [*line, "suggest", str(spec), "--most", "1", "--resolve", "--output-format", "json"],
        env=variables,
        capture_output=True,
        text=True,
        timeout=600,
    )
    (first,) = json.loads(done.stdout)["combinations"]
    require("index", "uv could not resolve it" not in first["note"], first["note"])
    assert first["evidence"] == "resolved by uv", first["note"]
    assert [change["now"] for change in first["changes"]] == ['"12.6"']
    spec.write_text(
        f'gpu: V100\ncuda: "{first["cuda"]}"\npython: "{first["python"]}"\npackages: '
        f"{json.dumps(first['packages'])}\ntraining: {{precision: fp16}}\n"
    )
    clean = fork_server.run([*line, "lint", str(spec)], capture_output=True, text=True, timeout=600)
    assert (clean.returncode, clean.stdout) == (0, "No findings.\n")
