"""The phases of a replica. A failed verification is a finished run, which is not repeated."""

from __future__ import annotations

import hashlib
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..core.shared_marks import find_shared_path, mark_folder, mark_text
from ..workbench.cloud import CloudClient, ServiceCallFailed
from ..workbench.document import WorkbenchDocument
from ..workbench.instance import PhaseFailed, WorkbenchInstance
from ..workbench.probe_run import ProbeResult, fetch_secrets, run_probe
from .baked_environment import BakedEnvironment, open_environment
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
        proof, marks = _phases(document, instance, meeting, reporter)
        reporter.begin_phase("report")
        cloud.write_object(reporter.document.report, proof.report, "application/json")
        reporter.log_line(f"verdict {proof.verdict}")
        reporter.finish(proof.verdict, hashlib.sha256(proof.report).hexdigest())
        if place.rank == 0:
            # The end of the primary replica ends the job, and with it the other replicas.
            limit_s = float(document.setup.expectations.get("timeout_s", 1800)) + _GRACE_S
            meeting.write_index(meeting.await_ends(limit_s, reporter.log_line))
            if marks is not None:
                shutil.rmtree(marks, ignore_errors=True)
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
) -> tuple[ProbeResult, Path | None]:
    """Return the result of the probe, and the folder of the marks in a declared path."""
    cloud, place = meeting.cloud, meeting.place
    setup = reporter.document
    environment = open_environment(document, setup, instance)
    offset = prepare_replica(environment, meeting, reporter, document.wheels)
    mark = _write_mark(setup, place)
    reporter.begin_phase("rendezvous")
    meeting.write_report(describe_replica(environment, place, offset))
    reports = meeting.await_reports(document.join_timeout_s, reporter.log_line)
    reporter.begin_phase("verify")
    secrets = fetch_secrets(setup, cloud, instance)
    expectations = {**setup.expectations, "replicas": _describe_others(setup, place, reports)}
    if isinstance(environment, BakedEnvironment):
        expectations["installed"] = environment.note_packages()
    verified = replace(environment, document=replace(setup, expectations=expectations))
    return run_probe(verified, secrets, list(setup.simulated)), mark


def _write_mark(setup: WorkbenchDocument, place: ClusterPlace) -> Path | None:
    """Write this machine's file to the folder of checkpoints; check G07 reads those of all.

    Return its folder, which the chief removes, or None without such a path.
    """
    path = find_shared_path(setup.paths)
    if path is None:
        return None
    folder = Path(mark_folder(path, setup.nonce))
    with suppress(OSError):
        folder.mkdir(exist_ok=True)
        (folder / place.name).write_text(mark_text(setup.nonce, place.name), encoding="utf-8")
    return folder


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
