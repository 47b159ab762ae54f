"""The emulated notebook execution jobs of Vertex AI: a notebook of a bucket runs in a kernel."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from typing import Any

from provision.facts import Facts
from provision.sandbox.api_errors import (
    ApiError,
    StatusCode,
    resource_not_found,
)
from provision.sandbox.discovery import VERTEX, VERTEX_PREFIX
from provision.sandbox.execution_validation import check_job, check_job_id
from provision.sandbox.faults import Faults
from provision.sandbox.injected_faults import raise_lost_answer
from provision.sandbox.lifecycle import Lifecycle
from provision.sandbox.notebook_execution import COLAB_PRODUCT, NotebookMachines, NotebookRun
from provision.sandbox.request_validation import validate_body
from provision.sandbox.storage import REFUSED_WRITER
from provision.sandbox.store import Store, utc_timestamp
from provision.sandbox.vertex_service import VertexService, begin_operation

Body = dict[str, Any]
_HIDDEN = ("directNotebookSource", "workbenchRuntime")
_HIDDEN_SHIELD = "shieldedInstanceConfig"
"""Fields that `get` does not return (magic-modules, colab NotebookExecution)."""
_DEFAULT_TIMEOUT_S = 86400.0
_MAX_NOTEBOOK_BYTES = 64 << 20


class ExecutionJobs:
    """The service over a store. Names are full resource names; methods raise ApiError to refuse."""

    def __init__(
        self,
        store: Store,
        facts: Facts,
        faults: Faults,
        lifecycle: Lifecycle,
        machines: NotebookMachines,
    ) -> None:
        self._store, self._facts, self._faults = store, facts, faults
        self._lifecycle, self._machines = lifecycle, machines
        self._vertex = VertexService(store, facts, faults, lifecycle.delays)

    def create(self, parent: str, job_id: str, body: Any) -> Body:
        """Create a job, which runs at once; the operation is done when the job exists."""
        _, region = self._vertex.admit(parent)
        check_job_id(job_id)
        requested = validate_body(
            body, f"{VERTEX_PREFIX}NotebookExecutionJob", "notebook_execution_job", VERTEX
        )
        check_job(requested, region, self._facts)
        name = f"{parent}/notebookExecutionJobs/{job_id or uuid.uuid4().int % 10**19}"
        with self._store.edit_data() as data:
            if name in data["executions"]:
                raise ApiError(
                    StatusCode.ALREADY_EXISTS,
                    f"Resource '{name}' already exists",
                    reason="alreadyExists",
                )
            self._check_references(data, requested)
            self._raise_creation_fault(region, requested)
            created = utc_timestamp()
            data["executions"][name] = {
                **requested,
                "name": name,
                "jobState": "JOB_STATE_PENDING",
                "createTime": created,
                "updateTime": created,
            }
            operation = begin_operation(
                data, "CreateNotebookExecutionJob", name, self._lifecycle.operation_end_time()
            )
        self._run(name)
        raise_lost_answer(self._faults)
        return operation

    def get(self, name: str) -> Body:
        """Return a job."""
        self._vertex.admit(name)
        with self._store.read_data() as data:
            if name not in data["executions"]:
                raise resource_not_found(name)
            return _shown(data["executions"][name])

    def list_jobs(self, parent: str) -> Body:
        """Return the jobs of a region."""
        self._vertex.admit(parent)
        with self._store.read_data() as data:
            jobs = [
                _shown(body)
                for name, body in sorted(data["executions"].items())
                if name.startswith(f"{parent}/")
            ]
        return {"notebookExecutionJobs": jobs} if jobs else {}

    def delete(self, name: str) -> Body:
        """Delete a job; its machine ends. There is no other way to stop one."""
        self._vertex.admit(name, changes=True)
        with self._store.edit_data() as data:
            if data["executions"].pop(name, None) is None:
                raise resource_not_found(name)
            operation = begin_operation(data, "DeleteNotebookExecutionJob", name, time.time())
        self._machines.stop(name)
        return operation

    def run_interrupted_jobs(self) -> None:
        """Run the jobs again whose machines ended with the process that ran the sandbox."""
        with self._store.read_data() as data:
            names = [
                name
                for name, body in data["executions"].items()
                if body["jobState"] in ("JOB_STATE_PENDING", "JOB_STATE_RUNNING")
            ]
        for name in names:
            self._run(name)

    def _run(self, name: str) -> None:
        with self._store.read_data() as data:
            body = dict(data["executions"][name])
        uri = body["gcsNotebookSource"]["uri"]
        bucket, _, path = uri.removeprefix("gs://").partition("/")
        source = self._store.object(bucket, path)
        _, _, _, region, *_ = name.split("/")
        if self._faults.has("stockout", region):
            error = f"No available zone found in {region}. Please try again later."
            self._end(name, error, StatusCode.RESOURCE_EXHAUSTED, b"")
        elif source is None or len(source.content) > _MAX_NOTEBOOK_BYTES:
            self._end(name, f"Unable to read {uri}", StatusCode.NOT_FOUND, b"")
        elif not (self._faults.has("hang") or self._faults.has("pending-job")):
            self._set_state(name, "JOB_STATE_RUNNING")
            timeout_s = float(body.get("executionTimeout", f"{_DEFAULT_TIMEOUT_S}s")[:-1])

            def done(error: str, executed: bytes) -> None:
                self._end(name, error, StatusCode.UNKNOWN, executed)

            storage = self._lifecycle.endpoints["storage"]
            if self._faults.has("no-bucket-write"):
                storage += REFUSED_WRITER.format(account=body.get("serviceAccount", "user"))
            dies = self._faults.has("dead-kernel")
            product = "WORKBENCH_INSTANCE" if "workbenchRuntime" in body else COLAB_PRODUCT
            notebook = NotebookRun(source.content, storage, timeout_s, product, dies)
            self._machines.start(name, notebook, done)

    def _set_state(self, name: str, state: str, **values: Any) -> None:
        with self._store.edit_data() as data:
            if name in data["executions"]:
                changes = {"jobState": state, "updateTime": utc_timestamp(), **values}
                data["executions"][name].update(changes)

    def _end(self, name: str, error: str, code: StatusCode, executed: bytes) -> None:
        """End a job, and write the executed notebook below its output."""
        with self._store.read_data() as data:
            output = str(data["executions"].get(name, {}).get("gcsOutputUri", ""))
        if executed and output:
            bucket, _, prefix = output.removeprefix("gs://").partition("/")
            file = f"{prefix.rstrip('/')}/{name.rpartition('/')[2]}.ipynb".lstrip("/")
            self._store.put_object(bucket, file, executed, "application/x-ipynb+json")
        if error:
            status = {"code": int(code), "message": error}
            self._set_state(name, "JOB_STATE_FAILED", status=status)
        else:
            self._set_state(name, "JOB_STATE_SUCCEEDED", status={})

    def _check_references(self, data: Body, requested: Mapping[str, Any]) -> None:
        template = requested.get("notebookRuntimeTemplateResourceName")
        if template is not None and template not in data["templates"]:
            raise resource_not_found(template)
        bucket = requested["gcsOutputUri"].removeprefix("gs://").partition("/")[0]
        if self._faults.has("no-bucket") and not self._store.has_bucket(bucket):
            raise ApiError(StatusCode.NOT_FOUND, f"The bucket {bucket} does not exist")

    def _raise_creation_fault(self, region: str, requested: Mapping[str, Any]) -> None:
        if self._faults.has("act-as"):
            account = requested.get("serviceAccount", "")
            raise ApiError(
                StatusCode.PERMISSION_DENIED,
                "Permission 'iam.serviceAccounts.actAs' denied on service account "
                f"{account} (or it may not exist).",
            )
        if self._faults.has("quota", region):
            raise ApiError(
                StatusCode.RESOURCE_EXHAUSTED,
                f"Quota 'CPUS' exceeded.  Limit: 0.0 in region {region}.",
            )


def _shown(body: Mapping[str, Any]) -> Body:
    shown = {key: value for key, value in body.items() if key not in _HIDDEN}
    if "customEnvironmentSpec" in shown:
        environment = dict(shown["customEnvironmentSpec"])
        environment.pop(_HIDDEN_SHIELD, None)
        shown["customEnvironmentSpec"] = environment
    return shown
