"""The emulated custom jobs of Vertex AI: the replicas of a job run as processes of this machine."""

from __future__ import annotations

import json
import re
import threading
import time
import uuid
from collections.abc import Mapping
from typing import Any

from provision.facts import Facts
from provision.facts.job_machines import CPU_METRIC, DISK_METRIC
from provision.sandbox.api_errors import (
    ApiError,
    StatusCode,
    invalid_argument,
    resource_not_found,
)
from provision.sandbox.custom_job_validation import check_custom_job
from provision.sandbox.discovery import VERTEX, VERTEX_PREFIX
from provision.sandbox.faults import Faults
from provision.sandbox.injected_faults import raise_lost_answer
from provision.sandbox.lifecycle import Lifecycle
from provision.sandbox.replica_machines import ReplicaMachines
from provision.sandbox.request_validation import validate_body
from provision.sandbox.running_jobs import JobEnd, RunningJob
from provision.sandbox.storage import REFUSED_WRITER
from provision.sandbox.store import Store, utc_timestamp
from provision.sandbox.vertex_service import VertexService, begin_operation

Body = dict[str, Any]
_ENDED = ("SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED")
_CONDITION = re.compile(r'(labels\.[a-z0-9_-]+|state|display_name)="?([A-Za-z0-9_ ./-]*)"?')
_DOCUMENT = re.compile(r"gs://([a-z0-9._-]+)/([A-Za-z0-9._/-]+\.json)")
_PAGE = 100
_INTERNAL = "Internal error occurred for the current attempt"
"""Texts of failed jobs in public issues."""


class CustomJobs:
    """The service over a store. Names are full resource names; methods raise ApiError to refuse."""

    def __init__(
        self,
        store: Store,
        facts: Facts,
        faults: Faults,
        lifecycle: Lifecycle,
        machines: ReplicaMachines,
    ) -> None:
        self._store, self._facts, self._faults = store, facts, faults
        self._lifecycle, self._machines = lifecycle, machines
        self._vertex = VertexService(store, facts, faults, lifecycle.delays)

    def create(self, parent: str, body: Any) -> Body:
        """Create a job, which runs at once. Neither an id nor a request id can be given."""
        _, region = self._vertex.admit(parent)
        requested = validate_body(body, f"{VERTEX_PREFIX}CustomJob", "custom_job", VERTEX)
        check_custom_job(requested, region, self._facts)
        self._raise_creation_fault(region, requested)
        name = f"{parent}/customJobs/{uuid.uuid4().int % 10**19}"
        created = utc_timestamp()
        with self._store.edit_data() as data:
            data["custom_jobs"][name] = {
                **requested,
                "name": name,
                "state": "JOB_STATE_PENDING",
                "createTime": created,
                "updateTime": created,
            }
            shown = dict(data["custom_jobs"][name])
        self._run(name)
        raise_lost_answer(self._faults)
        return shown

    def get(self, name: str) -> Body:
        """Return a job."""
        self._vertex.admit(name)
        with self._store.read_data() as data:
            return dict(_job(data, name))

    def list_jobs(self, parent: str, text: str, size: int, token: str) -> Body:
        """Return the jobs of a region that match a filter."""
        self._vertex.admit(parent)
        alternatives = _parse_filter(text)
        with self._store.read_data() as data:
            jobs = [
                dict(body)
                for name, body in sorted(data["custom_jobs"].items())
                if name.startswith(f"{parent}/")
                and any(_matches(body, conditions) for conditions in alternatives)
            ]
        first = int(token) if token.isdecimal() else 0
        last = first + (size or _PAGE)
        page: Body = {"customJobs": jobs[first:last]} if jobs[first:last] else {}
        if last < len(jobs):
            page["nextPageToken"] = str(last)
        return page

    def cancel(self, name: str) -> Body:
        """Start to cancel a job; its replicas end a moment later."""
        self._vertex.admit(name, changes=True)
        with self._store.edit_data() as data:
            job = _job(data, name)
            if _state(job) in _ENDED:
                raise ApiError(
                    StatusCode.FAILED_PRECONDITION,
                    f"Job {name} is in the state {job['state']} and cannot be cancelled.",
                )
            job |= {"state": "JOB_STATE_CANCELLING", "updateTime": utc_timestamp()}
        threading.Thread(target=self._end_cancelled, args=(name,), daemon=True).start()
        return {}

    def delete(self, name: str) -> Body:
        """Delete a job that has ended; that the service refuses others is a guess."""
        self._vertex.admit(name, changes=True)
        with self._store.edit_data() as data:
            if _state(_job(data, name)) not in _ENDED:
                raise ApiError(StatusCode.FAILED_PRECONDITION, f"Job {name} has not ended.")
            del data["custom_jobs"][name]
            return begin_operation(data, "DeleteCustomJob", name, time.time())

    def end_interrupted_jobs(self) -> None:
        """End the jobs whose replicas ended with the process that ran the sandbox."""
        with self._store.read_data() as data:
            names = [name for name, job in data["custom_jobs"].items() if _state(job) not in _ENDED]
        for name in names:
            self._fail(name, StatusCode.INTERNAL, _INTERNAL)

    def _run(self, name: str) -> None:
        with self._store.read_data() as data:
            body = dict(data["custom_jobs"][name])
        region = name.split("/")[3]
        if self._faults.has("stockout", region):
            self._fail(
                name,
                StatusCode.RESOURCE_EXHAUSTED,
                f"Resources are insufficient in region: {region}. Try a different region or use "
                "a different accelerator.",
            )
            return
        if self._faults.consume("internal-job"):
            self._fail(name, StatusCode.INTERNAL, _INTERNAL)
            return
        if self._faults.has("queued-job"):
            self._set_state(name, "JOB_STATE_QUEUED")
            return
        if self._faults.has("hang") or self._faults.has("pending-job"):
            return
        storage = self._lifecycle.endpoints["storage"]
        refused = storage
        if self._faults.has("no-bucket-write"):
            account = body["jobSpec"].get("serviceAccount", "user")
            refused += REFUSED_WRITER.format(account=account)
        scripts = [text.partition(":") for text in self._faults.locations("worker-preempted")]
        reclaimed = {replica: output for replica, _, output in scripts}
        job = RunningJob(
            name,
            body["jobSpec"],
            storage=refused,
            metadata=storage.removeprefix("http://"),
            secrets=self._lifecycle.endpoints["secrets"],
            killed=self._faults.locations("worker-lost"),
            reclaimed=reclaimed,
            missing=self._faults.locations("replica-missing"),
            silent=self._faults.locations("silent-host"),
            slow=self._faults.locations("slow-link"),
            texts=self._read_documents(body["jobSpec"]),
        )
        self._machines.start(job, lambda: self._started(name), lambda end: self._ended(name, end))

    def _read_documents(self, spec: Mapping[str, Any]) -> tuple[str, ...]:
        """Return a job's spec and the documents of buckets that it names."""
        text = json.dumps(spec)
        stored = [self._store.object(bucket, name) for bucket, name in _DOCUMENT.findall(text)]
        return (text, *(item.content.decode("utf-8", "replace") for item in stored if item))

    def _started(self, name: str) -> None:
        self._set_state(name, "JOB_STATE_RUNNING", startTime=utc_timestamp())
        if self._faults.has("cancelled-by-other"):
            self._end_cancelled(name)

    def _end_cancelled(self, name: str) -> None:
        self._machines.stop(name)
        status = {"code": int(StatusCode.CANCELLED), "message": "CANCELED"}
        self._set_state(name, "JOB_STATE_CANCELLED", error=status, endTime=utc_timestamp())

    def _ended(self, name: str, end: JobEnd) -> None:
        if end.error:
            self._fail(name, StatusCode.INVALID_ARGUMENT, end.error)
        else:
            self._set_state(name, "JOB_STATE_SUCCEEDED", endTime=utc_timestamp())

    def _fail(self, name: str, code: StatusCode, message: str) -> None:
        status = {"code": int(code), "message": message}
        self._set_state(name, "JOB_STATE_FAILED", error=status, endTime=utc_timestamp())

    def _set_state(self, name: str, state: str, **values: Any) -> None:
        """Change the state of a job; that of one that has ended is final."""
        with self._store.edit_data() as data:
            job = data["custom_jobs"].get(name)
            if job is not None and _state(job) not in _ENDED:
                job |= {"state": state, "updateTime": utc_timestamp(), **values}

    def _raise_creation_fault(self, region: str, requested: Mapping[str, Any]) -> None:
        spec = requested["jobSpec"]
        replicas = [
            f"workerpool{number}-{index}"
            for number, pool in enumerate(spec["workerPoolSpecs"])
            for index in range(int(pool.get("replicaCount", 0)))
        ]
        if missing := self._faults.find_missing_replica(replicas):
            raise invalid_argument(
                f"--fault {missing}: the job does not have this replica; it has "
                f"{', '.join(replicas)}"
            )
        if self._faults.has("act-as"):
            raise ApiError(
                StatusCode.PERMISSION_DENIED,
                "Permission 'iam.serviceAccounts.actAs' denied on service account "
                f"{spec.get('serviceAccount', '')} (or it may not exist).",
            )
        if self._faults.has("quota", region):
            kind = spec["workerPoolSpecs"][0]["machineSpec"].get("acceleratorType", "")
            cards = [card.name for card in self._facts.cards if kind and card.vertex == kind]
            metrics = [CPU_METRIC]
            metrics += [
                self._facts.training_quotas[card].metric
                for card in cards
                if card in self._facts.training_quotas
            ]
            names = ",".join(
                f"aiplatform.googleapis.com/{name}" for name in (*metrics, DISK_METRIC)
            )
            raise ApiError(
                StatusCode.RESOURCE_EXHAUSTED,
                f"The following quota metrics exceed quota limits: {names}",
            )


def _job(data: Body, name: str) -> Body:
    if name not in data["custom_jobs"]:
        raise resource_not_found(name)
    body: Body = data["custom_jobs"][name]
    return body


def _state(job: Mapping[str, Any]) -> str:
    return str(job["state"]).removeprefix("JOB_STATE_")


def _parse_filter(text: str) -> list[list[tuple[str, str]]]:
    """Return the alternatives of a filter, each a list of conditions.

    Raises:
        ApiError: something else than conditions joined by AND, or single ones joined by OR.
    """
    parts = re.split(r"\s+OR\s+", text.strip())
    alternatives = []
    for part in parts:
        conditions = [] if part == "" else re.split(r"\s+AND\s+", part)
        matches = [_CONDITION.fullmatch(condition) for condition in conditions]
        pairs = [(match[1], match[2]) for match in matches if match is not None]
        if len(pairs) < len(matches) or (len(parts) > 1 and len(pairs) != 1):
            raise invalid_argument(f"Invalid filter: {text}")
        alternatives.append(pairs)
    return alternatives


def _matches(job: Mapping[str, Any], conditions: list[tuple[str, str]]) -> bool:
    fields = {"state": job["state"], "display_name": job["displayName"]}
    labels = {f"labels.{key}": value for key, value in job.get("labels", {}).items()}
    return all({**fields, **labels}.get(field) == value for field, value in conditions)
