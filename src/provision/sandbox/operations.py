"""Long-running operations: begun, done when their time has come, looked up, listed, cancelled."""

from __future__ import annotations

import time
import uuid
from typing import Any

from provision.sandbox.api_errors import ApiError, StatusCode, not_found
from provision.sandbox.store import utc_timestamp

_PACKAGE = "type.googleapis.com/google.cloud.notebooks.v2"
ENDLESS = 1e18
Data = dict[str, Any]


def begin(data: Data, verb: str, target: str, due: float, *, error: ApiError | None = None) -> Data:
    """Begin an operation on an instance that is done at `due` (seconds since the epoch), with
    `error` where it will fail. Returns its record.

    Raises Failure (409) while another operation on the same instance is at work: these are not
    queued here.
    """
    require_no_running_operation(data, target)
    parent = target.rsplit("/instances/", 1)[0]
    name = f"{parent}/operations/operation-{int(time.time() * 1000)}-{uuid.uuid4()}"
    record = {
        "name": name,
        "verb": verb,
        "target": target,
        "created": utc_timestamp(),
        "due": due,
        "done": False,
        "outcome": None if error is None else error.to_rpc_status(),
        "response": None,
        "cancelled": False,
        "ended": "",
    }
    data["operations"][name] = record
    return record


def require_no_running_operation(data: Data, target: str) -> None:
    """Raise Failure (409) while an operation on an instance is at work. The words are those that
    Terraform's provider retries on.
    """
    if any(
        record["target"] == target and not record["done"] for record in data["operations"].values()
    ):
        raise conflict_error(target)


def conflict_error(target: str) -> ApiError:
    """Return what is said of a change while another one is at work."""
    return ApiError(StatusCode.ABORTED, f"{target}: unable to queue the operation")


def complete(record: Data, response: Data | None) -> None:
    """End an operation: with its error where it has one, else with what it made (None: nothing, as
    of a deletion).
    """
    record.update(done=True, ended=utc_timestamp(), response=response)


def to_json(record: Data) -> Data:
    """Return an operation as the API shows it."""
    metadata: Data = {
        "@type": f"{_PACKAGE}.OperationMetadata",
        "createTime": record["created"],
        "target": record["target"],
        "verb": record["verb"],
        "apiVersion": "v2",
        "endpoint": "NOTEBOOKS",
    }
    if record["cancelled"]:
        metadata["requestedCancellation"] = True
    operation: Data = {"name": record["name"], "metadata": metadata}
    if not record["done"]:
        return operation
    metadata["endTime"] = record["ended"]
    operation["done"] = True
    if record["outcome"] is not None:
        operation["error"] = record["outcome"]
    elif record["response"] is None:
        operation["response"] = {"@type": "type.googleapis.com/google.protobuf.Empty"}
    else:
        operation["response"] = {"@type": f"{_PACKAGE}.Instance", **record["response"]}
    return operation


def find(data: Data, name: str) -> Data:
    """Return the record of an operation. Raises Failure (404)."""
    if name not in data["operations"]:
        raise not_found(name)
    record: Data = data["operations"][name]
    return record


def cancel(data: Data, name: str) -> None:
    """Ask for an operation's end: it fails with CANCELLED when it is next looked at, and what it
    began stays as it is.
    """
    record = find(data, name)
    if not record["done"]:
        record.update(
            cancelled=True,
            due=0.0,
            outcome=ApiError(StatusCode.CANCELLED, "The operation was cancelled.").to_rpc_status(),
        )
