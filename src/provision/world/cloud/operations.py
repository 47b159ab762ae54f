"""Waiting for a long-running operation by its name: also for one that an earlier run of ours began."""

from __future__ import annotations

from provision.effects import Tell
from provision.world.cloud.failures import CloudError, Failure, Width, classify
from provision.world.cloud.faults import of_operation
from provision.world.cloud.notebooks import Notebooks, Wire
from provision.world.cloud.pace import Pace, polled
from provision.world.cloud.rest import project_of


def finish(notebooks: Notebooks, operation: Wire, pace: Pace, tell: Tell = lambda _: None) -> Wire | None:
    """Wait until an operation is done and return it; None where the service has forgotten it (then the instance itself tells).

    Raises CloudError: what the operation failed with, or kind "slow" when it is not done after `operation_s`. It goes on without us.
    """
    forgotten: list[str] = []

    def look() -> Wire | None:
        found = operation if operation.get("done") else notebooks.operation(operation["name"])
        if found is None:
            forgotten.append(operation["name"])
        return operation if found is None else found if found.get("done") else None

    doing = operation.get("metadata", {}).get("verb") or "the operation"
    where = operation["name"].split("/")[3]
    found = polled(look, pace, pace.operation_s, lambda long: tell(f"still waiting for {doing} in {where}, {long}"))
    if found is None:
        raise CloudError(_slow(operation, pace))
    if "error" in found:
        raise CloudError(classify(of_operation(found["error"]), project_of(found["name"])))
    return None if forgotten else found


def last(notebooks: Notebooks, name: str) -> Wire | None:
    """Return the latest operation on an instance that the service remembers, as of a run that was cut short; None when there is none, or none can be listed."""
    try:
        found = notebooks.operations(name.partition("/instances/")[0])
    except CloudError:
        return None
    ours = [one for one in found if one.get("metadata", {}).get("target", "").endswith(name)]
    return max(ours, key=lambda one: (not one.get("done"), one["metadata"].get("createTime", "")), default=None)


def at_work(notebooks: Notebooks, name: str) -> Wire | None:
    """Return the operation that is at work on an instance; None when there is none, or none can be listed."""
    found = last(notebooks, name)
    return None if found is None or found.get("done") else found


def _slow(operation: Wire, pace: Pace) -> Failure:
    name = operation["name"]
    what = f"{operation.get('metadata', {}).get('verb') or 'the operation'} is not done after {pace.operation_s / 60:.0f} minutes"
    instance = operation.get("metadata", {}).get("target", "").rpartition("/instances/")[2]
    see = f"gcloud workbench instances {f'describe {instance}' if instance else 'list'} --project={project_of(name)} --location={name.split('/')[3]}"
    hint = f"it goes on at Google Cloud: run the same command again to wait for it\nsee it: {see}"
    return Failure(Width.FATAL, "slow", what, f"operation {name}", hint)
