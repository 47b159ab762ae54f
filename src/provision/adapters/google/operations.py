"""Long-running operations of Notebooks v2, found by name or by their instance."""

from __future__ import annotations

from provision.adapters.google.errors import CloudError, CloudFailure, FailureScope, classify_error
from provision.adapters.google.instance_commands import InstanceCommand, render_command
from provision.adapters.google.notebooks import NotebooksApi, RestResource
from provision.adapters.google.rest import project_from_name
from provision.adapters.google.retry import RetryPolicy, poll_until
from provision.adapters.google.service_errors import parse_operation_error
from provision.effects.system import ProgressCallback


def wait_for_operation(
    notebooks: NotebooksApi,
    operation: RestResource,
    policy: RetryPolicy,
    progress: ProgressCallback = lambda _: None,
) -> None:
    """Wait until an operation is done, or until the service no longer remembers it.

    Raises:
        CloudError: the operation failed, or (kind "slow") is not done after `operation_s`; it
            then continues at the service.
    """
    name, verb = operation["name"], _verb(operation)
    zone = name.split("/")[3]

    def get_done() -> RestResource | None:
        if operation.get("done"):
            return operation
        current = notebooks.operation(name)
        if current is None:  # forgotten: the state of the instance shows the result
            return {"name": name}
        return current if current.get("done") else None

    done = poll_until(
        get_done,
        policy,
        policy.operation_s,
        lambda waited: progress(f"still waiting for {verb} in {zone}, {waited}"),
    )
    if done is None:
        raise CloudError(_timeout_failure(operation, policy))
    if "error" in done:
        error = parse_operation_error(done["error"])
        raise CloudError(classify_error(error, project_from_name(done["name"])))


def latest_operation(notebooks: NotebooksApi, name: str) -> RestResource | None:
    """Return the latest operation on an instance, also one that an earlier run began.

    None if there is none, or they cannot be listed. A running operation comes first.
    """
    try:
        listed = notebooks.operations(name.partition("/instances/")[0])
    except CloudError:
        return None
    return max(
        (
            operation
            for operation in listed
            if operation.get("metadata", {}).get("target", "").endswith(name)
        ),
        key=lambda operation: (
            not operation.get("done"),
            operation["metadata"].get("createTime", ""),
        ),
        default=None,
    )


def running_operation(notebooks: NotebooksApi, name: str) -> RestResource | None:
    """Return the operation that is running on an instance, None if there is none."""
    operation = latest_operation(notebooks, name)
    return None if operation is None or operation.get("done") else operation


def _verb(operation: RestResource) -> str:
    return operation.get("metadata", {}).get("verb") or "the operation"


def _timeout_failure(operation: RestResource, policy: RetryPolicy) -> CloudFailure:
    name = operation["name"]
    what = f"{_verb(operation)} is not done after {policy.operation_s / 60:.0f} minutes"
    instance = operation.get("metadata", {}).get("target", "").rpartition("/instances/")[2]
    command = InstanceCommand(
        "describe" if instance else "list", project_from_name(name), name.split("/")[3], instance
    )
    hint = (
        "it goes on at Google Cloud: run the same command again to wait for it\n"
        f"see it: {render_command(command)}"
    )
    return CloudFailure(FailureScope.FATAL, "slow", what, f"operation {name}", hint)
