"""The proof: the probe, in the environment that was made, with the variables and secrets that programs there get."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .cloud import Cloud
from .document import Document
from .machine import Machine, PhaseFailed
from .making import prefix

LIMIT = 8 * 2**20
_ATTRIBUTE = "provision-simulated"
_GRACE_S = 120.0


@dataclass(frozen=True, slots=True)
class Proof:
    """What the probe said: its verdict, its exit code, its report."""

    verdict: str
    code: int
    report: bytes


def fetch_secrets(document: Document, cloud: Cloud, machine: Machine) -> dict[str, str]:
    """Return the declared secrets by variable; from now on no text that leaves holds one of them. Raises CloudError."""
    values = {}
    for name, reference in sorted(document.secrets.items()):
        values[name] = cloud.secret(reference)
        machine.cleaner.learn([values[name]])
    return values


def simulated(document: Document, cloud: Cloud) -> list[str]:
    """Return what is not real here: what the document says, and what the machine says of itself (a sandbox does)."""
    try:
        told = json.loads(cloud.attribute(_ATTRIBUTE) or "[]")
    except ValueError:
        told = ["an instance that says so in words that cannot be read"]
    listed = told if isinstance(told, list) else [told]
    return list(dict.fromkeys([*document.simulated, *(str(one)[:200] for one in listed)]))


def prove(document: Document, machine: Machine, secrets: Mapping[str, str], not_real: list[str]) -> Proof:
    """Run the probe as the person and return what it says; raises PhaseFailed when it gives no verdict."""
    where = prefix(document, machine)
    folder = machine.ours / "reports" / document.nonce
    expectations = _expectations(document, where, not_real)
    machine.put(folder / "expectations.json", json.dumps(expectations))
    machine.run(["rm", "-f", "--", str(folder / "report.json")], 60)  # one of an earlier try is no answer
    argv = [str(where / "bin/python"), str(machine.work / "probe.pyz"), "verify", "--expectations", str(folder / "expectations.json")]
    path = f"{where / 'bin'}:{machine.environ.get('PATH', '/usr/bin:/bin')}"
    variables = {**document.variables, **secrets, "VIRTUAL_ENV": str(where), "PATH": path}
    limit = float(expectations.get("timeout_s", 1800)) + _GRACE_S
    answer = machine.run([*argv, "--out", str(folder / "report.json")], limit, variables=variables, folder=machine.person.home)
    if answer.code not in (0, 1, 3):
        raise PhaseFailed(f"the verification could not run: exit code {answer.code}\n{answer.output}")
    report = machine.cleaner.without_values(machine.read(folder / "report.json", LIMIT) or "").encode()
    try:
        verdict = str(json.loads(report)["verdict"]["result"])
    except (ValueError, KeyError, TypeError):
        raise PhaseFailed(f"the verification left no whole report\n{answer.output}") from None
    return Proof(verdict, answer.code, report)


def _expectations(document: Document, where: Path, not_real: list[str]) -> dict[str, Any]:
    told = document.expectations
    python = told.get("python")
    return {**told, "nonce": document.nonce, "simulated": not_real, "python": {**(python if isinstance(python, dict) else {}), "prefix": str(where)}}
