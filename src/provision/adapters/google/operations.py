"""Long-running operations of Notebooks v2, found by name or by their instance."""

from __future__ import annotations

from provision.adapters.google.errors import CloudError, classify_error, fatal_error
from provision.adapters.google.instance_commands import InstanceCommand, render_command
from provision.adapters.google.notebooks import NotebooksApi
from provision.adapters.google.rest import RestResource, project_from_name
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
        CloudError: the operation failed, or (kind "slow") has not finished after `operation_s`; it
            then continues at the service.
    """
    name = operation["name"]
    verb = operation.get("metadata", {}).get("verb") or "the operation"
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
        instance = operation.get("metadata", {}).get("target", "").rpartition("/instances/")[2]
        command = InstanceCommand(
            "describe" if instance else "list", project_from_name(name), zone, instance
        )
        raise fatal_error(
            "slow",
            f"{verb} has not finished after {policy.operation_s / 60:.0f} minutes",
            f"operation {name}",
            "it continues on Google Cloud: run the same command again to wait for it\n"
            f"show it: {render_command(command)}",
        )
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
    own = [row for row in listed if row.get("metadata", {}).get("target", "").endswith(name)]
    # A running operation comes first.
    own.sort(key=lambda row: (not row.get("done"), row["metadata"].get("createTime", "")))
    return own[-1] if own else None


def running_operation(notebooks: NotebooksApi, name: str) -> RestResource | None:
    """Return the operation that is running on an instance, None if there is none."""
    operation = latest_operation(notebooks, name)
    return None if operation is None or operation.get("done") else operation
