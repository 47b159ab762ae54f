"""What a report observed of a runtime against the facts, and the rules asked again of it: by
machines as the probe judges them.
"""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from provision.commands.shared.facts_comparison import compare_with_facts
from provision.commands.shared.report_import import ImportedReport
from provision.facts import load_facts
from tests.notebook_rig import Home, judged, machine
from tests.pytorch_rig import PyTorch
from tests.rig import Bench

SPEC = """\
gpu: T4
cuda: "12.8"
python: "3.12"
packages: ["torch==2.11.0"]
requires: {driver: ">=570"}
training: {framework: none}
targets: {colab: {kind: colab, runtime: "2026.07"}}
"""


@pytest.fixture
def home(bench: Bench, pytorch: PyTorch) -> Home:
    rig = Bench(bench.folder, bench.index, pytorch.offline())
    rig.spec(SPEC)
    done = rig.run("apply", "spec.yaml", "--yes")
    assert done.returncode == 3, done.stderr
    assert "CUD006" not in done.stderr
    return Home(rig)


def report_of(home: Home, **observed: Any) -> bytes:
    promised = home.promised()
    return judged(promised, machine(promised, **observed))


def received(home: Home, **observed: Any) -> ImportedReport:
    return home.receive(report_of(home, **observed))


def lines(one: ImportedReport) -> list[str]:
    return [moved.line for moved in one.facts_comparison.differences]


def test_where_all_is_as_listed_nothing_is_said(home: Home) -> None:
    one = received(home)
    assert (
        one.report.verdict,
        one.facts_comparison.differences,
        one.facts_comparison.findings,
    ) == ("verified", (), ())
    assert one.facts_comparison.as_of == load_facts().conditions["host driver"].evidence.as_of


def test_a_silent_rule_speaks_after_an_older_driver_was_observed(home: Home) -> None:
    (home.bench.folder / "r.json").write_bytes(
        report_of(home, driver__version="550.54.15", driver__major="550")
    )
    done = home.bench.run("report", "add", "r.json")
    assert done.returncode == 1, done.stderr
    assert "the NVIDIA driver is 550.54.15, expected 580.82.07" in done.stdout
    assert "Findings for the observed values:" in done.stdout
    assert "CUD006" in done.stdout
    assert "driver 550.54.15 on Colab's machines does not satisfy" in " ".join(done.stdout.split())
    told = json.loads(home.bench.run("report", "add", "r.json", "--output-format", "json").stdout)
    assert told["moved"] == [
        {"what": "the NVIDIA driver", "listed": "580.82.07", "found": "550.54.15"}
    ]
    assert [finding["id"] for finding in told["findings"]] == ["CUD006"]
    stored = json.loads(
        home.bench.run("apply", "spec.yaml", "--yes", "--output-format", "json").stdout
    )
    assert [finding["id"] for finding in stored["results"][0]["findings"]] == ["CUD006"]
    assert "CUD006" in home.bench.run("apply", "spec.yaml", "--yes").stdout


@pytest.mark.long
def test_a_newer_driver_moved_and_no_rule_minds(home: Home) -> None:
    one = received(home, driver__version="590.10", driver__major="590")
    assert one.report.exit_code == 0
    assert lines(one) == ["the NVIDIA driver is 590.10, expected 580.82.07"]
    assert one.facts_comparison.findings == ()


@pytest.mark.long
def test_another_python_is_told_and_judged(home: Home) -> None:
    one = received(
        home, python__version="3.13.15", python__minor="3.13", os__version="24", host__glibc="2.39"
    )
    assert one.report.exit_code == 1
    assert lines(one) == [
        "Python is 3.13.15, expected 3.12.13",
        "the system is Ubuntu 24.04, expected Ubuntu 22.04",
        "glibc is 2.39, expected 2.35",
    ]
    assert "IMG020" in [finding.id for finding in one.facts_comparison.findings]


def test_an_older_c_library_makes_its_rule_speak(home: Home) -> None:
    one = received(home, host__glibc="2.27", os__version="18")
    assert "glibc is 2.27, expected 2.35" in lines(one)
    assert "CUD004" in [finding.id for finding in one.facts_comparison.findings]


def test_another_card_is_told_and_judged_in_place_of_the_one_asked_for(home: Home) -> None:
    card = {
        "gpu__name": "NVIDIA L4",
        "gpu__compute_capability": "8.9",
        "gpu__vram_bytes": 22693 * 2**20,
        "memory__total_bytes": 22693 * 2**20,
    }
    one = received(home, **card, nvml__pci=["10de:27b8"], host__ram_bytes=53 * 2**30)
    assert one.report.exit_code == 1
    assert lines(one) == [
        "the GPU is NVIDIA L4, expected Tesla T4",
        "its compute capability is 8.9, expected 7.5",
        "the memory is 53 GiB, expected 12.7 GiB",
        "the GPU memory is 22.2 GiB, expected 15 GiB",
    ]


@pytest.mark.long
def test_another_torch_than_listed_is_told_where_the_lock_keeps_it(home: Home) -> None:
    one = received(
        home,
        package__torch="2.12.0+cu128",
        torch__version="2.12.0+cu128",
        _packages__installed={"torch": "2.12.0+cu128"},
    )
    assert one.report.exit_code == 1
    assert "torch is 2.12.0, expected 2.11.0" in lines(one)


@pytest.mark.long
def test_strange_readings_break_nothing(home: Home) -> None:
    promised, loaded, place = home.promised(), home.loaded, home.place()
    document = json.loads(judged(promised, machine(promised)))
    keys = (
        "driver.version",
        "python.version",
        "host.glibc",
        "os.version",
        "gpu.name",
        "gpu.compute_capability",
        "host.ram_bytes",
        "package.torch",
    )
    for key, value in itertools.product(
        keys,
        (
            "\x1b[31m580",
            "not a version",
            "9" * 5000,
            "9" * 90,
            "1.." * 9,
            -1,
            580,
            None,
            ["580"],
            {"a": 1},
            True,
        ),
    ):
        rows = [
            {**row, "value": value} if row["key"] == key else row for row in document["readings"]
        ]
        found = compare_with_facts(loaded, place, {**document, "readings": rows})
        assert not [finding for finding in found.findings if finding.id == "BUG000"], (key, value)
        assert not [moved for moved in found.differences if "\x1b" in moved.line], (key, value)
