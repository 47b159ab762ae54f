"""Waiting for a long-running operation by its name: also for one that an earlier run of ours began."""  # noqa: E501

from __future__ import annotations

from provision.adapters.google.errors import CloudError, CloudFailure, FailureScope, classify_error
from provision.adapters.google.notebooks import NotebooksApi, RestResource
from provision.adapters.google.rest import project_from_name
from provision.adapters.google.retry import RetryPolicy, poll_until
from provision.adapters.google.service_errors import parse_operation_error
from provision.effects import ProgressCallback


def wait_for_operation(
    notebooks: NotebooksApi,
    operation: RestResource,
    pace: RetryPolicy,
    tell: ProgressCallback = lambda _: None,
) -> RestResource | None:
    """Wait until an operation is done and return it; None where the service has forgotten it (then
    the instance itself tells).

    Raises CloudError: what the operation failed with, or kind "slow" when it is not done after
    `operation_s`. It goes on without us.
    """
    forgotten: list[str] = []

    def look() -> RestResource | None:
        found = operation if operation.get("done") else notebooks.operation(operation["name"])
        if found is None:
            forgotten.append(operation["name"])
        return operation if found is None else found if found.get("done") else None

    doing = operation.get("metadata", {}).get("verb") or "the operation"
    where = operation["name"].split("/")[3]
    found = poll_until(
        look,
        pace,
        pace.operation_s,
        lambda long: tell(f"still waiting for {doing} in {where}, {long}"),
    )
    if found is None:
        raise CloudError(_timeout_failure(operation, pace))
    if "error" in found:
        raise CloudError(
            classify_error(parse_operation_error(found["error"]), project_from_name(found["name"]))
        )
    return None if forgotten else found


def latest_operation(notebooks: NotebooksApi, name: str) -> RestResource | None:
    """Return the latest operation on an instance that the service remembers, as of a run that was
    cut short; None when there is none, or none can be listed.
    """
    try:
        found = notebooks.operations(name.partition("/instances/")[0])
    except CloudError:
        return None
    ours = [one for one in found if one.get("metadata", {}).get("target", "").endswith(name)]
    return max(
        ours,
        key=lambda one: (not one.get("done"), one["metadata"].get("createTime", "")),
        default=None,
    )


def running_operation(notebooks: NotebooksApi, name: str) -> RestResource | None:
    """Return the operation that is at work on an instance; None when there is none, or none can be
    listed.
    """
    found = latest_operation(notebooks, name)
    return None if found is None or found.get("done") else found


def _timeout_failure(operation: RestResource, pace: RetryPolicy) -> CloudFailure:
    name = operation["name"]
    what = (
        f"{operation.get('metadata', {}).get('verb') or 'the operation'} is not done after "
        f"{pace.operation_s / 60:.0f} minutes"
    )
    instance = operation.get("metadata", {}).get("target", "").rpartition("/instances/")[2]
    see = (
        f"gcloud workbench instances {f'describe {instance}' if instance else 'list'} "
        f"--project={project_from_name(name)} --location={name.split('/')[3]}"
    )
    hint = f"it goes on at Google Cloud: run the same command again to wait for it\nsee it: {see}"
    return CloudFailure(FailureScope.FATAL, "slow", what, f"operation {name}", hint)
