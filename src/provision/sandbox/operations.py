"""Long-running operations: begin, complete, find, list and cancel."""

from __future__ import annotations

import time
import uuid
from typing import Any

from provision.sandbox.api_errors import ApiError, StatusCode, resource_not_found
from provision.sandbox.store import utc_timestamp

_PACKAGE = "type.googleapis.com/google.cloud.notebooks.v2"
ENDLESS = 1e18
Data = dict[str, Any]


def begin(data: Data, verb: str, target: str, due: float, error: ApiError | None) -> Data:
    """Begin an operation on an instance and return its record.

    It is done at `due` (seconds since the epoch), with `error` if it fails.

    Raises:
        ApiError: another operation on the instance is running (409); there is no queue.
    """
    for running in data["operations"].values():
        if running["target"] == target and not running["done"]:
            raise conflict_error(target)
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


def conflict_error(target: str) -> ApiError:
    """Return the error for a change while another one is running.

    The message is one on which Terraform's provider retries.
    """
    return ApiError(StatusCode.ABORTED, f"{target}: unable to queue the operation")


def complete(record: Data, response: Data | None) -> None:
    """End an operation with its error, or with its result (None for a deletion)."""
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
    """Return the record of an operation; raises ApiError (404)."""
    if name not in data["operations"]:
        raise resource_not_found(name)
    record: Data = data["operations"][name]
    return record


def cancel(data: Data, name: str) -> None:
    """Request the cancellation of an operation.

    It ends with CANCELLED when it is next read, and its effects so far remain.
    """
    record = find(data, name)
    if not record["done"]:
        record.update(
            cancelled=True,
            due=0.0,
            outcome=ApiError(StatusCode.CANCELLED, "The operation was cancelled.").to_rpc_status(),
        )
