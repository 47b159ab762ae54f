"""Runs the probe in the environment, with its variables and secrets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from .cloud import CloudClient
from .document import WorkbenchDocument
from .environment import Environment
from .instance import PhaseFailed, WorkbenchInstance

MAX_REPORT_BYTES = 8 * 2**20
_ATTRIBUTE = "provision-simulated"
_GRACE_S = 120.0


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The probe's verdict, exit code and report."""

    verdict: str
    code: int
    report: bytes


def fetch_secrets(
    document: WorkbenchDocument, cloud: CloudClient, instance: WorkbenchInstance
) -> dict[str, str]:
    """Return the declared secrets by variable, redacted from now on. Raises ServiceCallFailed."""
    values = {}
    for name, reference in sorted(document.secrets.items()):
        values[name] = cloud.read_secret(reference)
        instance.redactor.add_secrets([values[name]])
    return values


def find_simulated_parts(document: WorkbenchDocument, cloud: CloudClient) -> list[str]:
    """Return what is simulated, from the document and the metadata of a sandbox."""
    try:
        parts = json.loads(cloud.read_metadata_attribute(_ATTRIBUTE) or "[]")
    except ValueError:
        parts = "an instance with unreadable metadata in provision-simulated"
    listed = parts if isinstance(parts, list) else [parts]
    return list(dict.fromkeys([*document.simulated, *(str(part)[:200] for part in listed)]))


def run_probe(
    environment: Environment, secrets: Mapping[str, str], simulated: list[str]
) -> ProbeResult:
    """Run the probe as the user and return its result. Raises PhaseFailed without a verdict."""
    document, instance = environment.document, environment.instance
    folder = instance.provision_folder / "reports" / document.nonce
    expectations_file, report_file = folder / "expectations.json", folder / "report.json"
    python = document.expectations.get("python")
    expectations = {
        **document.locate_code(environment.code_parent),
        "nonce": document.nonce,
        "simulated": simulated,
        "python": {
            **(python if isinstance(python, dict) else {}),
            "prefix": str(environment.prefix),
        },
    }
    instance.write_file(expectations_file, json.dumps(expectations))
    instance.run(["rm", "-f", "--", str(report_file)], 60)  # an earlier report does not count
    argv = [environment.python, str(instance.work / "probe.pyz"), "verify"]
    argv += ["--expectations", str(expectations_file), "--out", str(report_file)]
    answer = instance.run(
        argv,
        float(expectations.get("timeout_s", 1800)) + _GRACE_S,
        variables={**environment.variables, **secrets, **environment.activation},
        folder=instance.user.home,
    )
    if answer.code not in (0, 1, 3):
        raise PhaseFailed(
            f"the verification could not run: exit code {answer.code}\n{answer.output_tail}"
        )
    report = instance.read_file(report_file, MAX_REPORT_BYTES) or ""
    report = instance.redactor.without_values(report)
    try:
        verdict = str(json.loads(report)["verdict"]["result"])
    except (ValueError, KeyError, TypeError):
        problem = f"the verification did not write a complete report\n{answer.output_tail}"
        raise PhaseFailed(problem) from None
    return ProbeResult(verdict, answer.code, report.encode())
