"""The phases of a replica that runs the user's program."""

from __future__ import annotations

import json
from contextlib import suppress

from ..core.process import NOT_STARTED
from ..workbench.cloud import ServiceCallFailed
from ..workbench.instance import PhaseFailed, WorkbenchInstance
from ..workbench.probe_run import fetch_secrets
from .baked_environment import BakedEnvironment, open_environment
from .document import JobDocument, ProgramRequest
from .meeting import Meeting, describe_replica
from .program import ProgramEnd, run_program
from .program_output import OutputSender
from .setup_phases import prepare_replica
from .status import ReplicaReporter

_JSON = "application/json"
_OTHERS_S = {True: 60.0, False: 10.0}
"""Seconds that the chief waits for the records of the others, whose ends it decides: after a
program that succeeded, and after one that failed. Our choice.
"""
_CHIEF_S = 30.0
"""Seconds that a failed worker leaves the chief to fail by itself: the end of a worker ends the
job, and the chief's exit code would be lost. Our choice.
"""
_RECLAIMED = 143


def run_program_phases(
    document: JobDocument,
    program: ProgramRequest,
    instance: WorkbenchInstance,
    meeting: Meeting,
    reporter: ReplicaReporter,
) -> int:
    """Run the program with the others, and return the exit code of this container.

    With restarts, a chief whose program failed ends with 0, as the service would repeat the job.
    """
    end = _phases(document, program, instance, meeting, reporter)
    if end.is_reclaimed:
        reporter.report_stop()
        return _RECLAIMED  # the machine that replaces this one reports the end
    reporter.finish_program(end.code, end.signal)
    if meeting.place.rank == 0:
        with suppress(PhaseFailed, ServiceCallFailed):
            meeting.await_ends(_OTHERS_S[end.exit_code == 0], reporter.log_line)
        return 0 if program.restarts else end.exit_code
    if end.exit_code and not program.restarts:
        meeting.await_chief(_CHIEF_S)
    return end.exit_code


def _phases(
    document: JobDocument,
    program: ProgramRequest,
    instance: WorkbenchInstance,
    meeting: Meeting,
    reporter: ReplicaReporter,
) -> ProgramEnd:
    cloud, place = meeting.cloud, meeting.place
    folder = f"{document.folder}{place.name}/"
    reporter.start = _count_start(folder, program, meeting)
    environment = open_environment(document, reporter.document, instance)
    offset = prepare_replica(environment, meeting, reporter, document.wheels)
    if isinstance(environment, BakedEnvironment):
        environment.require_packages()
    reporter.begin_phase("rendezvous")
    meeting.write_report(describe_replica(environment, place, offset))
    meeting.await_reports(document.join_timeout_s, reporter.log_line)
    secrets = fetch_secrets(reporter.document, cloud, instance)
    reporter.begin_phase("program")
    record = instance.work / "run.json"
    sender = OutputSender(cloud, folder, reporter.start, instance.redactor)
    try:
        end = run_program(program, environment, place, secrets, sender, record)
    except PhaseFailed as error:
        # As a shell: a machine that starts again would not find the program either.
        reporter.log_line(str(error))
        sender.add(f"provision: {error}\n".encode())
        sender.send(everything=True)
        return ProgramEnd(NOT_STARTED, None)
    with suppress(OSError, ServiceCallFailed):
        cloud.write_object(f"{folder}run.json", record.read_bytes(), _JSON)
    return end


def _count_start(folder: str, program: ProgramRequest, meeting: Meeting) -> int:
    """Return the number of this start, which the service does not report.

    Raises:
        PhaseFailed: the machine was restarted too often.
    """
    address, last = f"{folder}starts.json", meeting.read_own_status()
    try:
        starts = int(json.loads(meeting.cloud.find_object(address) or b"0")) + 1
    except (ValueError, TypeError):
        starts = 1
    meeting.cloud.write_object(address, str(starts).encode(), _JSON)
    if starts - 1 > program.restarts and program.restarts:
        raise PhaseFailed(
            f"the machine was restarted {starts - 1} times, and `restarts` is {program.restarts}; "
            f"its last phase: {last.get('p', 'none')} {last.get('e', '')}".rstrip()
        )
    return starts
