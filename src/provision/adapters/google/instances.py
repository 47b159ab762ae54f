"""One instance in one zone: waited for, changed, stopped, started, deleted; each leaves it in a
state that the service confirms.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from provision.adapters.google.errors import CloudError, CloudFailure, FailureScope, classify_error
from provision.adapters.google.notebooks import NotebooksApi, RestResource, to_snake_case
from provision.adapters.google.operations import running_operation, wait_for_operation
from provision.adapters.google.retry import RetryPolicy, poll_until
from provision.adapters.google.service_errors import ServiceError
from provision.effects import ProgressCallback
from provision.sanitize import escape_line, redact

ConsoleReader = Callable[[str], str]
"""The last lines of the serial console of an instance; "" where they cannot be read."""
_WHILE_STOPPED = (
    "gce_setup.machine_type",
    "gce_setup.accelerator_configs",
    "gce_setup.shielded_instance_config",
    "gce_setup.container_image",
    "gce_setup.min_cpu_platform",
    "gce_setup.reservation_affinity",
)
"""What changes on a stopped instance only (Terraform's google_workbench_instance stops it for the
first four; Compute Engine does for the others).
"""
LINEAGE_LABEL = "provision-lineage"
"""The label that tells which state made an instance."""
_CONSOLE_CAUSES = ("Proxy Registration", "Required '", "Unable to get Service Account")
"""What the console says where an instance cannot register
(DataBiosphere/terra-workspace-manager#848).
"""
_ENDED_STATES = ("DELETED", "ORPHANED", "STOPPED", "STOPPING", "SUSPENDED", "SUSPENDING")


def await_active(
    notebooks: NotebooksApi,
    name: str,
    pace: RetryPolicy,
    tell: ProgressCallback,
    serial: ConsoleReader,
) -> RestResource:
    """Wait until an instance is ACTIVE, at most `boot_s`, and return it: its operation is done
    before that.

    Raises CloudError: kind "stuck" with what its serial console says of it, "ended" where it
    stopped instead, "gone" where it never came to be seen.
    """
    told, end_of_hiding = [""], pace.clock() + pace.visible_s

    def look() -> RestResource | None:
        found = notebooks.get(name)
        if found is None:
            if pace.clock() >= end_of_hiding:
                raise CloudError(_missing_failure(name))
            return None
        state = found.get("state", "")
        if state != told[0]:
            told[0] = state
            tell(f"boot: {name.rpartition('/')[2]} is {state or 'of an unknown state'}")
        if state in _ENDED_STATES:
            raise CloudError(_ended_failure(name, state))
        return found if state == "ACTIVE" else None

    active = poll_until(
        look,
        pace,
        pace.boot_s,
        lambda long: tell(
            f"still boot: {name.rpartition('/')[2]} is {told[0] or 'not seen yet'}, {long}"
        ),
    )
    if active is None:
        raise CloudError(_stuck_failure(name, told[0], serial(name), pace))
    return active


def update_instance(
    notebooks: NotebooksApi,
    name: str,
    body: RestResource,
    mask: str,
    pace: RetryPolicy,
    tell: ProgressCallback,
    serial: ConsoleReader,
) -> None:
    """Change the fields that `mask` names; where one of them needs it, a running instance is
    stopped before and started after. Raises CloudError.
    """
    running = _get_existing(notebooks, name).get("state") != "STOPPED"
    around = running and any(
        path.startswith(_WHILE_STOPPED) for path in to_snake_case(mask).split(",")
    )
    if around:
        stop_instance(notebooks, name, pace, tell)
    try:
        tell(f"update: {to_snake_case(mask)}")
        wait_for_operation(
            notebooks, notebooks.update(name, body, mask, pace.new_uuid()), pace, tell
        )
    except CloudError as error:
        if running and not around:
            raise
        raise _with_note(
            error, f"{name.rpartition('/')[2]} is stopped now; `provision apply` starts it again"
        ) from error
    if around:
        start_instance(notebooks, name, pace, tell, serial)


def resize_disk(
    notebooks: NotebooksApi,
    name: str,
    disk: str,
    size_gb: str,
    pace: RetryPolicy,
    tell: ProgressCallback,
) -> None:
    """Make a disk ("bootDisk", "dataDisk") larger; nothing happens where it has that size already.
    Raises CloudError.
    """
    setup = _get_existing(notebooks, name).get("gceSetup", {})
    there = (setup.get("dataDisks") or [{}])[0] if disk == "dataDisk" else setup.get("bootDisk", {})
    if int(there.get("diskSizeGb", 0)) >= int(size_gb):
        return
    tell(f"resize: {'data' if disk == 'dataDisk' else 'boot'} disk to {size_gb} GiB")
    wait_for_operation(notebooks, notebooks.resize(name, disk, size_gb), pace)


def stop_instance(
    notebooks: NotebooksApi, name: str, pace: RetryPolicy, tell: ProgressCallback
) -> None:
    """Stop an instance and wait until it is; nothing happens where it is already. Raises
    CloudError.
    """
    state = _get_existing(notebooks, name).get("state")
    if state == "STOPPED":
        return
    tell(f"stop: {name.rpartition('/')[2]}")
    if state == "STOPPING" and (pending := running_operation(notebooks, name)):
        wait_for_operation(notebooks, pending, pace, tell)
    elif state != "STOPPING":
        wait_for_operation(notebooks, notebooks.stop(name), pace, tell)
    found = poll_until(
        lambda: True if _get_existing(notebooks, name).get("state") == "STOPPED" else None,
        pace,
        pace.boot_s,
        lambda long: tell(f"still stopping, {long}"),
    )
    if found is None:
        raise CloudError(
            CloudFailure(
                FailureScope.FATAL,
                "stuck",
                f"{name} does not stop",
                f"asked for {pace.boot_s / 60:.0f} minutes",
                _inspect_hint(name),
            )
        )


def start_instance(
    notebooks: NotebooksApi,
    name: str,
    pace: RetryPolicy,
    tell: ProgressCallback,
    serial: ConsoleReader,
) -> None:
    """Start an instance and wait until it is ACTIVE; nothing happens where it is already. Raises
    CloudError.
    """
    state = _get_existing(notebooks, name).get("state")
    if state == "ACTIVE":
        return
    if pending := running_operation(notebooks, name):
        wait_for_operation(notebooks, pending, pace, tell)
        state = _get_existing(notebooks, name).get("state")
    if state in ("STOPPED", "SUSPENDED", "STOPPING"):
        tell(f"start: {name.rpartition('/')[2]}")
        wait_for_operation(notebooks, notebooks.start(name), pace, tell)
    await_active(notebooks, name, pace, tell, serial)


def delete_instance(
    notebooks: NotebooksApi,
    name: str,
    pace: RetryPolicy,
    tell: ProgressCallback,
    lineage: str | None = None,
) -> None:
    """Delete an instance and wait until the service no longer knows it; nothing happens where it is
    gone already. Raises CloudError.

    With a lineage, one that bears another's label, or none, is left alone.
    """
    found = find_instance(notebooks, name)
    if found is None:
        return
    if lineage is not None and found.get("labels", {}).get(LINEAGE_LABEL) != lineage:
        tell(
            f"left alone: {name} belongs to another state (label "
            f"{LINEAGE_LABEL}={escape_line(str(found.get('labels', {}).get(LINEAGE_LABEL, '')))})"
        )
        return
    tell(f"delete: {name.rpartition('/')[2]}")
    operation = notebooks.delete(name, pace.new_uuid())
    if operation is not None:
        wait_for_operation(notebooks, operation, pace, tell)
    if (
        poll_until(
            lambda: True if notebooks.get(name) is None else None,
            pace,
            pace.boot_s,
            lambda long: tell(f"still deleting, {long}"),
        )
        is None
    ):
        hint = f"it may still cost money; delete it again:\n{gcloud_command('delete', name)}"
        raise CloudError(
            CloudFailure(
                FailureScope.FATAL,
                "stuck",
                f"{name} is still there",
                f"deleted, and asked for {pace.boot_s / 60:.0f} minutes",
                hint,
            )
        )


def find_instance(notebooks: NotebooksApi, name: str) -> RestResource | None:
    """Return an instance, or None if neither a GET nor the list of its zone shows it: a single 404
    may come from a replica that is behind.

    Raises:
        CloudError: the service did not answer; a list that is not permitted leaves the answer of
        the GET.
    """
    if (found := notebooks.get(name)) is not None:
        return found
    try:
        listed, _ = notebooks.list(name.rpartition("/instances/")[0])
    except CloudError as error:
        if error.failure.kind == "permission":
            return None
        raise
    return next((instance for instance in listed if instance.get("name") == name), None)


def gcloud_command(verb: str, name: str) -> str:
    """Return the gcloud line that does `verb` to an instance."""
    _, project, _, zone, _, instance = name.split("/")
    return f"gcloud workbench instances {verb} {instance} --project={project} --location={zone}"


def _get_existing(notebooks: NotebooksApi, name: str) -> RestResource:
    found = notebooks.get(name)
    if found is None:
        raise CloudError(_missing_failure(name))
    return found


def _with_note(error: CloudError, what: str) -> CloudError:
    return CloudError(replace(error.failure, why=f"{error.failure.why}\n{what}"))


def _missing_failure(name: str) -> CloudFailure:
    hint = (
        "somebody deleted it, or it never came to be: run `provision plan` to see what would "
        "be done"
    )
    return CloudFailure(
        FailureScope.FATAL,
        "gone",
        f"there is no instance {name.rpartition('/')[2]}",
        f"Google Cloud does not know {name}",
        hint,
    )


def _ended_failure(name: str, state: str) -> CloudFailure:
    hint = f"its log tells why: provision's own is in the bucket; {_inspect_hint(name)}"
    return CloudFailure(
        FailureScope.FATAL,
        "ended",
        f"{name.rpartition('/')[2]} is {state} instead of ACTIVE",
        "it was stopped or deleted while it booted",
        hint,
    )


def _stuck_failure(name: str, state: str, console: str, pace: RetryPolicy) -> CloudFailure:
    """What is said of an instance that does not become ACTIVE: a cause that its console names, else
    where to look.
    """
    lines = [
        line.strip()[:300]
        for line in console.splitlines()
        if any(word in line for word in _CONSOLE_CAUSES)
    ][-3:]
    cause = classify_error(ServiceError(9, "\n".join(lines))) if lines else None
    what = (
        f"{name.rpartition('/')[2]} is still {state or 'not seen'} after "
        f"{pace.boot_s / 60:.0f} minutes, and it costs money"
    )
    if cause is None:
        return CloudFailure(
            FailureScope.FATAL,
            "stuck",
            what,
            "the operation is done, yet the instance does not become ACTIVE",
            _inspect_hint(name),
        )
    told = "\n".join(f"its console: {escape_line(redact(line))}" for line in lines)
    return CloudFailure(
        FailureScope.FATAL,
        "stuck",
        what,
        f"{cause.what}\n{told}",
        f"{cause.hint}\n{_inspect_hint(name)}",
    )


def _inspect_hint(name: str) -> str:
    _, project, _, zone, _, instance = name.split("/")
    return (
        f"read its console: gcloud compute instances get-serial-port-output {instance} "
        f"--project={project} --zone={zone}\n"
        f"collect its logs: {gcloud_command('diagnose', name)} --gcs-path=gs://BUCKET\n"
        f"delete it: {gcloud_command('delete', name)}"
    )
