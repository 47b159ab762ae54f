"""The training proof of an earlier report: kept only if nothing moved that it rests on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from provision.adapters import RealSystem
from provision.agent.probe.catalogue import is_applicable, select_checks
from provision.agent.probe.expectations import parse_expectations
from provision.agent.probe.model import Need
from provision.agent.probe.redactor import Redactor
from provision.agent.probe.report import verdict_of
from provision.agent.probe.report_json import canonical_digest
from provision.targets.local.training_proof import (
    REPORT_FILE,
    REQUEST_FILE,
    find_earlier_proof,
    is_same_machine,
)
from provision.verification import read_report
from provision.verification.device_files import probe_digest
from provision.verification.parity import evaluate_parity
from provision.verification.parity_model import (
    DeclaredEnvironment,
    ParityTarget,
    ReportStanding,
    StatementResult,
)

RECORDED = Path(__file__).parents[1] / "reports/recorded/quickstart.json"
PACKAGES = frozenset({"torch", "transformers", "accelerate", "numpy"})
Document = dict[str, Any]


def request(**versions: str) -> Document:
    packages = {"torch": "2.13.0", "numpy": "2.4", "pandas": "3.0"} | versions
    return {
        "packages": [{"name": name, "version": version} for name, version in packages.items()],
        "python": {"version": "3.11", "prefix": "/old"},
        "env": {},
        "lock": {"digest": "a"},
        "tier": "quick",
    }


def write_report(folder: Path, name: str = "report.json", **subject: str) -> Document:
    document: Document = json.loads(RECORDED.read_bytes())
    document["tool"]["probe_sha256"] = probe_digest()
    document["subject"] |= subject
    return stamp(folder / name, document)


def stamp(path: Path, document: Document) -> Document:
    content = {key: value for key, value in document.items() if key != "digests"}
    document["digests"]["report"] = canonical_digest(content)
    path.write_text(json.dumps(document))
    return document


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    document = write_report(tmp_path)
    asked = {**request(), "nonce": document["subject"]["nonce"]}
    (tmp_path / "expectations.json").write_text(json.dumps(asked))
    return tmp_path


def found(folder: Path, asked: Document) -> bool:
    return find_earlier_proof(folder, asked, PACKAGES, RealSystem()) is not None


@pytest.mark.parametrize(
    ("asked", "holds"),
    [
        (request(), True),
        (request(pandas="3.1"), True),
        (request(six="1.0"), True),
        ({**request(), "lock": {"digest": "b"}, "direct": ["six"]}, True),
        ({**request(), "python": {"version": "3.11", "prefix": "/new"}}, True),
        (request(torch="2.14.0"), False),
        (request(numpy="2.5"), False),
        (request(accelerate="1.0"), False),
        ({**request(), "python": {"version": "3.12", "prefix": "/old"}}, False),
        ({**request(), "code": {"digest": "sha256:bb"}}, False),
        ({**request(), "flavour": "cu130"}, False),
        ({**request(), "tier": "deep"}, False),
        ({**request(), "env": {"A": "1"}}, False),
    ],
)
def test_what_moves_decides(reports: Path, asked: Document, holds: bool) -> None:
    assert found(reports, asked) is holds


def test_a_verification_from_another_folder_keeps_the_proof(reports: Path) -> None:
    """The request has the command line that runs a program, with the path of the spec."""
    before = json.loads((reports / "expectations.json").read_bytes())
    command = {"argv": ["python", "train.py"], "run": "provision run spec.yaml"}
    (reports / "expectations.json").write_text(json.dumps({**before, "command": command}))
    moved = {**command, "run": "provision run ../spec.yaml"}
    assert found(reports, {**request(), "command": moved})
    assert not found(reports, {**request(), "command": {**moved, "argv": ["python", "other.py"]}})


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document["verdict"].update(result="failed"),
        lambda document: document.update(tier="inventory"),
        lambda document: document["subject"].update(proof="imports"),
        lambda document: document["subject"].update(proof="jax"),
        lambda document: document["subject"].update(nonce="of another run"),
        lambda document: document["tool"].update(probe_sha256="0" * 64),
    ],
)
def test_only_a_whole_verified_report_counts(
    reports: Path, change: Callable[[Document], None]
) -> None:
    document = json.loads((reports / "report.json").read_bytes())
    change(document)
    stamp(reports / "report.json", document)
    assert not found(reports, request())


def test_a_report_that_was_edited_or_is_gone_does_not_count(reports: Path) -> None:
    text = (reports / "report.json").read_text()
    (reports / "report.json").write_text(text.replace("quickstart", "quickstarT"))
    assert not found(reports, request())
    (reports / "report.json").unlink()
    assert not found(reports, request())


def test_a_partial_report_leads_to_the_whole_one(reports: Path) -> None:
    (reports / "report.json").rename(reports / REPORT_FILE)
    (reports / "expectations.json").rename(reports / REQUEST_FILE)
    partial = write_report(reports, training_proof="x", nonce="later")
    asked = {**request(pandas="3.1"), "nonce": partial["subject"]["nonce"]}
    (reports / "expectations.json").write_text(json.dumps(asked))
    proof = find_earlier_proof(reports, request(pandas="3.2"), PACKAGES, RealSystem())
    assert proof is not None
    assert not proof.report.subject.training_proof
    assert proof.name.startswith(f"{REPORT_FILE} of 2026-")
    assert not found(reports, request(torch="2.14.0"))


def test_another_driver_or_card_is_another_machine(reports: Path) -> None:
    document = json.loads((reports / "report.json").read_bytes())

    def with_driver(version: str) -> Any:
        row = {"key": "driver.version", "value": version, "class": "identity-weak"}
        changed = {**document, "readings": [*document["readings"], row]}
        return read_report(json.dumps(changed).encode(), "x")

    assert is_same_machine(with_driver("580.1"), with_driver("580.1"))
    assert not is_same_machine(with_driver("580.1"), with_driver("590.1"))


def expectations(**changes: Any) -> Document:
    return {
        "schema": "provision.expectations/1",
        "tool": {},
        "spec": {},
        "lock": {},
        "target": {},
        "tier": "quick",
        "timeout_s": 60,
        "nonce": "n",
        "python": {"version": "3.11", "prefix": "/x"},
        "platform": "linux-x86_64",
        "flavour": "cpu",
        "glibc_min": None,
        "packages": [{"name": "torch", "version": "2.13.0"}],
        "direct": ["torch"],
        "gpu": {"type": None, "count": 0},
        "requires": dict.fromkeys(
            ("ram_bytes", "disk_bytes", "shm_bytes", "vram_bytes", "driver", "compute_capability")
        ),
        "paths": {},
        "env": {},
        "secrets": [],
        "training": {
            "framework": "torch",
            "precision": "fp32",
            "dataloader_workers": 0,
            "gradient_checkpointing": False,
            "optimizer": "adamw",
            "arguments": {},
        },
        **changes,
    }


def test_the_probe_does_not_train_and_says_whose_proof_it_is() -> None:
    whole = parse_expectations(expectations())
    partial = parse_expectations(expectations(training_proof="training-proof.json of today"))
    trains = [one for one in select_checks(whole) if Need.TRAINING in one.check.needs]
    assert trains
    assert any(is_applicable(one.check, whole) for one in trains)
    kept = [one for one in select_checks(partial) if Need.TRAINING in one.check.needs]
    assert not any(is_applicable(one.check, partial) for one in kept)
    assert {one.id for one in select_checks(partial) if one.required} >= {"P01", "P02"}
    verdict = verdict_of(partial, (), False, Redactor())
    assert "training proof from training-proof.json of today" in verdict["sentence"]
    assert "training proof" not in verdict_of(whole, (), False, Redactor())["sentence"]


def test_parity_does_not_call_a_partial_verdict_equal(tmp_path: Path) -> None:
    declared = DeclaredEnvironment("3.11", {"torch": "2.13.0+cpu"}, "cpu", None)
    whole = read_report(json.dumps(write_report(tmp_path)).encode(), "a")
    document = write_report(tmp_path, training_proof="training-proof.json of today")
    rows = document["readings"]
    document["readings"] = [row for row in rows if not row["key"].startswith("train.")]
    partial = read_report(json.dumps(document).encode(), "b")
    targets = [
        ParityTarget(name, "local", ReportStanding("verified"), declared, report, "", "")
        for name, report in (("a", whole), ("b", partial))
    ]
    training = next(
        one for one in evaluate_parity(targets).statements if one.subject == "training result"
    )
    assert training.result is StatementResult.UNPROVEN
    assert "b relies on the training proof from training-proof.json of today" in training.why
