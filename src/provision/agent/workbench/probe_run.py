"""Runs the probe in the environment, with its variables and secrets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .cloud import CloudClient
from .document import Document
from .environment import environment_prefix
from .instance import Instance, PhaseFailed

MAX_REPORT_BYTES = 8 * 2**20
_ATTRIBUTE = "provision-simulated"
_GRACE_S = 120.0


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The probe's verdict, exit code and report."""

    verdict: str
    code: int
    report: bytes


def fetch_secrets(document: Document, cloud: CloudClient, instance: Instance) -> dict[str, str]:
    """Return the declared secrets by variable; they are redacted from now on. Raises CloudError."""
    values = {}
    for name, reference in sorted(document.secrets.items()):
        values[name] = cloud.read_secret(reference)
        instance.redactor.add_secrets([values[name]])
    return values


def find_simulated_parts(document: Document, cloud: CloudClient) -> list[str]:
    """Return what is simulated, by the document and by the instance's metadata (a sandbox's)."""
    try:
        told = json.loads(cloud.read_metadata_attribute(_ATTRIBUTE) or "[]")
    except ValueError:
        told = ["an instance that says so in words that cannot be read"]
    listed = told if isinstance(told, list) else [told]
    return list(dict.fromkeys([*document.simulated, *(str(one)[:200] for one in listed)]))


def run_probe(
    document: Document, instance: Instance, secrets: Mapping[str, str], not_real: list[str]
) -> ProbeResult:
    """Run the probe as the user and return its result. Raises PhaseFailed without a verdict."""
    where = environment_prefix(document, instance)
    folder = instance.provision_folder / "reports" / document.nonce
    expectations = _expectations(document, where, not_real)
    instance.write_file(folder / "expectations.json", json.dumps(expectations))
    instance.run(
        ["rm", "-f", "--", str(folder / "report.json")], 60
    )  # one of an earlier try is no answer
    argv = [
        str(where / "bin/python"),
        str(instance.work / "probe.pyz"),
        "verify",
        "--expectations",
        str(folder / "expectations.json"),
    ]
    path = f"{where / 'bin'}:{instance.environ.get('PATH', '/usr/bin:/bin')}"
    variables = {**document.variables, **secrets, "VIRTUAL_ENV": str(where), "PATH": path}
    limit = float(expectations.get("timeout_s", 1800)) + _GRACE_S
    answer = instance.run(
        [*argv, "--out", str(folder / "report.json")],
        limit,
        variables=variables,
        folder=instance.user.home,
    )
    if answer.code not in (0, 1, 3):
        raise PhaseFailed(
            f"the verification could not run: exit code {answer.code}\n{answer.output}"
        )
    report = instance.redactor.without_values(
        instance.read_file(folder / "report.json", MAX_REPORT_BYTES) or ""
    ).encode()
    try:
        verdict = str(json.loads(report)["verdict"]["result"])
    except (ValueError, KeyError, TypeError):
        raise PhaseFailed(f"the verification left no whole report\n{answer.output}") from None
    return ProbeResult(verdict, answer.code, report)


def _expectations(document: Document, where: Path, not_real: list[str]) -> dict[str, Any]:
    told = document.expectations
    python = told.get("python")
    return {
        **told,
        "nonce": document.nonce,
        "simulated": not_real,
        "python": {**(python if isinstance(python, dict) else {}), "prefix": str(where)},
    }
