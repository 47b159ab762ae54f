"""The phases of a replica. A failed verification is a finished run, which is not repeated."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

from ..workbench.cloud import CloudClient, ServiceCallFailed
from ..workbench.document import WorkbenchDocument
from ..workbench.environment import Environment
from ..workbench.instance import PhaseFailed, WorkbenchInstance
from ..workbench.probe_run import ProbeResult, fetch_secrets, run_probe
from .cluster import ClusterPlace
from .document import JobDocument
from .meeting import Meeting, describe_replica
from .program_phases import run_program_phases
from .setup_phases import prepare_replica
from .status import ReplicaReporter

_GRACE_S = 300.0
"""Seconds that the chief waits for the other reports beyond the limit of a verification."""


def run_phases(
    document: JobDocument,
    place: ClusterPlace,
    instance: WorkbenchInstance,
    cloud: CloudClient,
    reporter: ReplicaReporter,
) -> int:
    """Run all phases; return 0, or 1 if one failed, or the exit code of the user's program.

    A failed verification is a finished run.
    """
    meeting = Meeting(cloud, document.folder, document.setup.nonce, place)
    try:
        if document.program is not None:
            return run_program_phases(document, document.program, instance, meeting, reporter)
        proof = _phases(document, instance, meeting, reporter)
        reporter.begin_phase("report")
        cloud.write_object(reporter.document.report, proof.report, "application/json")
        reporter.log_line(f"verdict {proof.verdict}")
        reporter.finish(proof.verdict, hashlib.sha256(proof.report).hexdigest())
        if place.rank == 0:
            # The end of the primary replica ends the job, and with it the other replicas.
            limit_s = float(document.setup.expectations.get("timeout_s", 1800)) + _GRACE_S
            meeting.write_index(meeting.await_ends(limit_s, reporter.log_line))
    except (PhaseFailed, ServiceCallFailed) as error:
        why = str(error)
    except Exception as error:  # noqa: BLE001
        why = f"internal error: {type(error).__name__}: {error}"
    else:
        return 0
    reporter.fail(why)
    return 1


def _phases(
    document: JobDocument,
    instance: WorkbenchInstance,
    meeting: Meeting,
    reporter: ReplicaReporter,
) -> ProbeResult:
    cloud, place = meeting.cloud, meeting.place
    setup, offset = prepare_replica(instance, meeting, reporter)
    environment = Environment(setup, instance)
    reporter.begin_phase("rendezvous")
    meeting.write_report(describe_replica(environment, place, offset))
    reports = meeting.await_reports(document.join_timeout_s, reporter.log_line)
    reporter.begin_phase("verify")
    secrets = fetch_secrets(setup, cloud, instance)
    expectations = {**setup.expectations, "replicas": _describe_others(setup, place, reports)}
    verified = replace(setup, expectations=expectations)
    return run_probe(Environment(verified, instance), secrets, list(setup.simulated))


def _describe_others(
    setup: WorkbenchDocument, place: ClusterPlace, reports: list[dict[str, Any]]
) -> dict[str, Any]:
    declared = setup.expectations.get("replicas")
    return {
        **(declared if isinstance(declared, dict) else {}),
        "names": list(place.names),
        "reports": reports,
        "rendezvous": {
            "rank": place.rank,
            "chief": place.chief,
            "port": place.port,
            "address": place.address,
        },
    }
