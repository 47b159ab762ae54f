"""The training proof of an earlier report, and whether what it rests on is still the same."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provision.agent.probe.model import Proof
from provision.effects.system import Reader
from provision.errors import ExternalError
from provision.lock import Lock, LockedEnvironment
from provision.verification import Report, read_report
from provision.verification.device_files import probe_digest
from provision.verification.report import MAX_REPORT_BYTES, find_tampering

REPORT_FILE, REQUEST_FILE = "training-proof.json", "training-proof-request.json"

_TRAINING_PACKAGES = frozenset(
    {"torch", "transformers", "accelerate"}
    # Trainer, torch or accelerate use these if they are installed.
    | {"apex", "bitsandbytes", "deepspeed", "flash-attn", "kernels", "liger-kernel", "peft"}
    | {"triton", "xformers"}
)
_INDEPENDENT = ("packages", "direct", "lock", "spec", "nonce", "training_proof")
"""Parts of a request that the training run does not depend on, or that are compared apart."""
_MACHINE_READINGS = ("driver.", "gpu.", "nvml.", "torch.", "python.", "os.", "host.")


@dataclass(frozen=True, slots=True)
class EarlierProof:
    """A report that has proven the training, its bytes, and the request that it answers."""

    report: Report
    content: bytes
    request: bytes

    @property
    def name(self) -> str:
        """The report's file, day and digest."""
        digest = self.report.text("digests", "report").removeprefix("sha256:")
        return f"{REPORT_FILE} of {self.report.subject.created_utc}, sha256 {digest[:12]}"


def find_earlier_proof(
    folder: Path, request: Mapping[str, Any], packages: frozenset[str], reader: Reader
) -> EarlierProof | None:
    """Return the proof that holds for a request too; None if the training has to run.

    Args:
        folder: the folder of the target's reports.
        request: the expectations of the run to come.
        packages: the packages that the training depends on.
        reader: reads the reports. May block.
    """
    proof = _read_proof(folder / "report.json", folder / "expectations.json", reader)
    if proof is not None and proof.report.subject.training_proof:
        proof = _read_proof(folder / REPORT_FILE, folder / REQUEST_FILE, reader)
    if proof is None or not _has_trained(proof.report):
        return None
    before = json.loads(proof.request)
    if before.get("nonce") != proof.report.subject.nonce:
        return None  # the request is that of another run, such as one of single checks
    if _fixed_part(before) != _fixed_part(request):
        return None
    old, new = _versions(before), _versions(request)
    moved = {name for name in {*old, *new} if old.get(name) != new.get(name)}
    return None if moved & packages else proof


def training_packages(lock: Lock, environment: LockedEnvironment) -> frozenset[str]:
    """Return the packages that the training depends on: torch, Trainer and what they require."""
    requires = {package.name: package.requires for package in lock.packages_in(environment)}
    found, pending = set(_TRAINING_PACKAGES), list(_TRAINING_PACKAGES)
    while pending:
        for name in requires.get(pending.pop(), ()):
            if name not in found:
                found.add(name)
                pending.append(name)
    return frozenset(found)


def is_same_machine(earlier: Report, report: Report) -> bool:
    """Return whether two reports name the same driver, cards, torch, Python and system."""
    before, after = (
        {key: value for key, value in one.values.items() if key.startswith(_MACHINE_READINGS)}
        for one in (earlier, report)
    )
    return all(after[key] == value for key, value in before.items() if key in after)


def _read_proof(report: Path, request: Path, reader: Reader) -> EarlierProof | None:
    try:
        content = reader.read(report, MAX_REPORT_BYTES)
        asked = reader.read(request, MAX_REPORT_BYTES)
        if not isinstance(json.loads(asked), dict):
            return None
        return EarlierProof(read_report(content, str(report)), content, asked)
    except (ExternalError, ValueError, RecursionError):
        return None


def _has_trained(report: Report) -> bool:
    """Return whether a report of this version's probe proves a training run."""
    return (
        report.verdict == "verified"
        and report.tier != "inventory"
        and report.subject.proof in (Proof.HF_TRAINER.value, Proof.TORCH.value)
        and not report.subject.training_proof
        and report.text("tool", "probe_sha256") == probe_digest()
        and not find_tampering(report)
    )


def _fixed_part(request: Mapping[str, Any]) -> dict[str, Any]:
    rest = {key: value for key, value in request.items() if key not in _INDEPENDENT}
    rest["python"] = {**rest.get("python", {}), "prefix": ""}
    if "command" in rest:
        # The command line of `provision run` depends on the working folder.
        rest["command"] = {**rest["command"], "run": ""}
    return rest


def _versions(request: Mapping[str, Any]) -> dict[str, str]:
    return {row["name"]: row["version"] for row in request.get("packages", ())}
