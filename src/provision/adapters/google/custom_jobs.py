"""Starts and cancels custom jobs of Vertex AI; a job is known by the label with its nonce."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from provision.adapters.google.client import GoogleClient
from provision.adapters.google.errors import CloudError, FailureScope, fatal_error
from provision.adapters.google.retry import poll_until
from provision.effects.system import ProgressCallback
from provision.effects.vertex import CancelJob, StartJob
from provision.errors import ExternalError

ENDED = ("SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED", "PARTIALLY_SUCCEEDED")
RUN_LABEL, LINEAGE_LABEL = "provision-run", "provision-lineage"
_ELSEWHERE = ("quota", "capacity", "not-here")
"""Kinds of refusals after which another region may take the job."""
_TRIES = 3
_NOT_CREATED = ("rate",)
"""Kinds of temporary failures after which no job exists."""


class JobUnplaced(ExternalError):
    """A region did not take the job, or did not give it its machines; another one may."""


class JobInternalError(JobUnplaced):
    """The service failed, after its own attempts; the job is tried once more."""


def start_job(effect: StartJob, client: GoogleClient, progress: ProgressCallback) -> None:
    """Create a job, unless one with its nonce exists.

    Raises:
        JobUnplaced: the region has too little quota or capacity.
        CloudError: the service refused the job, or it is not known whether it was created.
    """
    region = effect.name.rpartition("/")[2]
    if known := client.job_stockouts.find(region, effect.body):
        hint = "list more regions, or run the same command again later"
        raise _unplaced(known, "the region had no capacity", hint)
    progress(f"request: custom job in {region}")
    for attempt in range(_TRIES):
        try:
            client.vertex.create_job(effect.name, effect.body)
            return
        except CloudError as error:
            failure = error.failure
            if failure.scope is not FailureScope.RETRY:
                error.still_running = ()
                if failure.kind in _ELSEWHERE:
                    raise _unplaced(failure.what, failure.why, failure.hint) from error
                raise
            if failure.kind in _NOT_CREATED:
                client.policy.sleep(failure.retry_after_s or client.policy.first_pause_s)
            elif is_listed(effect.name, effect.nonce, client):
                progress("the response was lost, but the job exists")
                return
            if attempt == _TRIES - 1:
                error.still_running = ()
                raise


def cancel_job(effect: CancelJob, client: GoogleClient, progress: ProgressCallback) -> None:
    """Cancel the jobs with a nonce that have not ended, and wait until they have.

    Raises:
        CloudError: they cannot be listed, or did not end in time.
    """
    for job in client.vertex.list_jobs(effect.name, f"{RUN_LABEL}={effect.nonce}"):
        is_own = job.get("labels", {}).get(LINEAGE_LABEL) == effect.lineage
        if not is_own or state_of(job) in ENDED:
            continue
        name = str(job["name"])
        progress(f"cancel: custom job {name.rpartition('/')[2]}")
        try:
            client.vertex.cancel_job(name)
        except CloudError as error:
            # It may have ended a moment ago.
            if state_of(client.vertex.job(name) or {"state": "CANCELLED"}) not in ENDED:
                raise error from None
        _await_end(name, client, progress)


def is_listed(parent: str, nonce: str, client: GoogleClient) -> bool:
    """Return whether a job with a nonce exists, once it would have been listed. May block."""

    def find() -> bool | None:
        return True if client.vertex.list_jobs(parent, f"{RUN_LABEL}={nonce}") else None

    return bool(poll_until(find, client.policy, client.policy.visible_s))


def state_of(job: Mapping[str, Any]) -> str:
    """Return the state of a job, as in "RUNNING"."""
    return str(job.get("state", "")).removeprefix("JOB_STATE_")


def _await_end(name: str, client: GoogleClient, progress: ProgressCallback) -> None:
    policy, short_name = client.policy, name.rpartition("/")[2]

    def is_ended() -> bool | None:
        job = client.vertex.job(name)
        return True if job is None or state_of(job) in ENDED else None

    ended = poll_until(
        is_ended,
        policy,
        policy.operation_s,
        lambda waited: progress(f"waiting for the end of job {short_name} {waited}"),
    )
    if ended is None:
        error = fatal_error(
            "slow",
            f"the custom job {short_name} has not ended",
            f"it was cancelled {policy.operation_s / 60:.0f} minutes ago",
            "it may still cost money: run the same command again",
        )
        error.still_running = (name,)
        raise error


def _unplaced(what: str, why: str, hint: str) -> JobUnplaced:
    error = JobUnplaced(what, why=why, hint=hint)
    error.still_running = ()
    return error
