"""Operations on an instance: each ends in a state that the service confirms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from provision.adapters.google.errors import CloudError, classify_error, fatal_error
from provision.adapters.google.instance_commands import instance_command
from provision.adapters.google.notebooks import NotebooksApi, to_snake_case
from provision.adapters.google.operations import running_operation, wait_for_operation
from provision.adapters.google.rest import RestResource
from provision.adapters.google.retry import RetryPolicy, poll_until
from provision.adapters.google.service_errors import ServiceError
from provision.adapters.google.stockouts import Stockouts
from provision.effects.system import ProgressCallback
from provision.sanitize import escape_line, redact

_CHANGED_WHILE_STOPPED = (
    "gce_setup.machine_type",
    "gce_setup.accelerator_configs",
    "gce_setup.shielded_instance_config",
    "gce_setup.container_image",
    "gce_setup.min_cpu_platform",
    "gce_setup.reservation_affinity",
)
"""Fields that change on a stopped instance only.

Terraform's google_workbench_instance stops it for the first four, Compute Engine for the others.
"""
LINEAGE_LABEL = "provision-lineage"
"""The label with the lineage of the state that made an instance."""
_CONSOLE_CAUSES = ("Proxy Registration", "Required '", "Unable to get Service Account")
"""Console text of an instance that cannot register (DataBiosphere/terra-workspace-manager#848)."""
_ENDED_STATES = ("DELETED", "ORPHANED", "STOPPED", "STOPPING", "SUSPENDED", "SUSPENDING")


@dataclass(frozen=True, slots=True)
class InstanceOperations:
    """Operations that wait for their result. All raise CloudError and may block for minutes.

    `console` returns the last text of an instance's serial console, "" if it cannot be read.
    """

    notebooks: NotebooksApi
    policy: RetryPolicy
    progress: ProgressCallback
    console: Callable[[str], str]
    stockouts: Stockouts

    def wait_for(self, operation: RestResource) -> None:
        """Wait until a long-running operation is done."""
        wait_for_operation(self.notebooks, operation, self.policy, self.progress)

    def await_active(self, name: str) -> RestResource:
        """Wait until an instance is ACTIVE, and return it.

        Its creation or start operation is done before that.

        Raises:
            CloudError: kind "stuck" with the cause on its console, "ended" if it stopped instead,
                "gone" if it never became visible.
        """
        short_name = _short_name(name)
        last_state = ""
        visible_until = self.policy.clock() + self.policy.visible_s

        def get_active() -> RestResource | None:
            nonlocal last_state
            instance = self.notebooks.get(name)
            if instance is None:
                if self.policy.clock() >= visible_until:
                    raise _missing_error(name)
                return None
            state = instance.get("state", "")
            if state != last_state:
                last_state = state
                self.progress(f"boot: {short_name} is {state or 'in an unknown state'}")
            if state in _ENDED_STATES:
                raise fatal_error(
                    "ended",
                    f"{short_name} is {state} instead of ACTIVE",
                    "it was stopped or deleted while it was booting",
                    (
                        "see its logs for the reason (provision's log is in the "
                        f"bucket); {_inspect_hint(name)}"
                    ),
                )
            return instance if state == "ACTIVE" else None

        def heartbeat(waited: str) -> None:
            self.progress(
                f"still booting: {short_name} is {last_state or 'not visible yet'}, {waited}"
            )

        active = poll_until(get_active, self.policy, self.policy.boot_s, heartbeat)
        if active is None:
            raise _stuck_error(name, last_state, self.console(name), self.policy)
        return active

    def update(self, name: str, body: RestResource, mask: str) -> None:
        """Change the fields that `mask` names, around a stop and a start if one needs it."""
        paths = to_snake_case(mask)
        is_running = self._get_existing(name).get("state") != "STOPPED"
        restarts = is_running and any(
            path.startswith(_CHANGED_WHILE_STOPPED) for path in paths.split(",")
        )
        if restarts:
            self.stop(name)
        try:
            self.progress(f"update: {paths}")
            self.wait_for(self.notebooks.update(name, body, mask, self.policy.new_uuid()))
        except CloudError as error:
            if is_running and not restarts:
                raise
            note = f"{_short_name(name)} is now stopped; `provision apply` starts it again"
            failure = replace(error.failure, why=f"{error.failure.why}\n{note}")
            raise CloudError(failure) from error
        if restarts:
            self.start(name)

    def resize_disk(self, name: str, disk: str, size_gb: str) -> None:
        """Enlarge a disk ("bootDisk", "dataDisk") unless it has that size already."""
        setup = self._get_existing(name).get("gceSetup", {})
        if disk == "dataDisk":
            current = (setup.get("dataDisks") or [{}])[0]
        else:
            current = setup.get("bootDisk", {})
        if int(current.get("diskSizeGb", 0)) >= int(size_gb):
            return
        self.progress(f"resize: {disk.removesuffix('Disk')} disk to {size_gb} GiB")
        wait_for_operation(self.notebooks, self.notebooks.resize(name, disk, size_gb), self.policy)

    def stop(self, name: str) -> None:
        """Stop an instance and wait until it is stopped."""
        state = self._get_existing(name).get("state")
        if state == "STOPPED":
            return
        self.progress(f"stop: {_short_name(name)}")
        if state != "STOPPING":
            self.wait_for(self.notebooks.stop(name))
        elif operation := running_operation(self.notebooks, name):
            self.wait_for(operation)
        if not self._wait_until(
            lambda: self._get_existing(name).get("state") == "STOPPED", "stopping"
        ):
            why = f"it has not stopped after {self.policy.boot_s / 60:.0f} minutes"
            raise fatal_error("stuck", f"{name} does not stop", why, _inspect_hint(name))

    def start(self, name: str) -> None:
        """Start an instance and wait until it is ACTIVE."""
        state = self._get_existing(name).get("state")
        if state == "ACTIVE":
            return
        if operation := running_operation(self.notebooks, name):
            self.wait_for(operation)
            state = self._get_existing(name).get("state")
        if state in ("STOPPED", "SUSPENDED", "STOPPING"):
            self.progress(f"start: {_short_name(name)}")
            self.wait_for(self.notebooks.start(name))
        self.await_active(name)

    def delete(self, name: str, lineage: str | None = None) -> None:
        """Delete an instance and wait until the service no longer shows it.

        With a lineage, an instance that does not have its label is left alone.
        """
        instance = find_instance(self.notebooks, name)
        if instance is None:
            return
        label = instance.get("labels", {}).get(LINEAGE_LABEL)
        if lineage is not None and label != lineage:
            owner = f"{LINEAGE_LABEL}={escape_line(str(label or ''))}"
            self.progress(f"not deleted: {name} belongs to another state (label {owner})")
            return
        self.progress(f"delete: {_short_name(name)}")
        operation = self.notebooks.delete(name, self.policy.new_uuid())
        if operation is not None:
            self.wait_for(operation)
        if not self._wait_until(lambda: self.notebooks.get(name) is None, "deleting"):
            why = (
                "the deletion was requested, but the instance still exists after "
                f"{self.policy.boot_s / 60:.0f} minutes"
            )
            hint = f"it may still cost money; delete it again:\n{instance_command('delete', name)}"
            raise fatal_error("stuck", f"{name} still exists", why, hint)

    def _wait_until(self, is_done: Callable[[], bool], action: str) -> bool:
        done = poll_until(
            lambda: is_done() or None,
            self.policy,
            self.policy.boot_s,
            lambda waited: self.progress(f"still {action}, {waited}"),
        )
        return done is not None

    def _get_existing(self, name: str) -> RestResource:
        instance = self.notebooks.get(name)
        if instance is None:
            raise _missing_error(name)
        return instance


def find_instance(notebooks: NotebooksApi, name: str) -> RestResource | None:
    """Return an instance, or None if neither a GET nor the list of its zone shows it.

    A single 404 may come from a replica that is behind.

    Raises:
        CloudError: the service did not answer; a list that is not permitted counts as empty.
    """
    if (instance := notebooks.get(name)) is not None:
        return instance
    try:
        listed, _ = notebooks.list(name.rpartition("/instances/")[0])
    except CloudError as error:
        if error.failure.kind == "permission":
            return None
        raise
    return next((instance for instance in listed if instance.get("name") == name), None)


def _short_name(name: str) -> str:
    return name.rpartition("/")[2]


def _missing_error(name: str) -> CloudError:
    return fatal_error(
        "gone",
        f"there is no instance {_short_name(name)}",
        f"Google Cloud has no instance {name}",
        "it was deleted or never created; run `provision plan` to see the necessary changes",
    )


def _stuck_error(name: str, state: str, console: str, policy: RetryPolicy) -> CloudError:
    """Return the error for an instance that stays inactive, with the cause on its console."""
    lines = [
        line.strip()[:300]
        for line in console.splitlines()
        if any(text in line for text in _CONSOLE_CAUSES)
    ]
    why = "the operation has finished, but the instance does not become ACTIVE"
    hint = _inspect_hint(name)
    if lines:
        cause = classify_error(ServiceError(9, "\n".join(lines[-3:])))
        shown = [f"its console: {escape_line(redact(line))}" for line in lines[-3:]]
        why, hint = "\n".join([cause.what, *shown]), f"{cause.hint}\n{hint}"
    what = (
        f"{_short_name(name)} is still {state or 'not visible'} after "
        f"{policy.boot_s / 60:.0f} minutes, and it costs money"
    )
    return fatal_error("stuck", what, why, hint)


def _inspect_hint(name: str) -> str:
    return (
        f"read its console: {instance_command('read-console', name)}\n"
        f"collect its logs: {instance_command('diagnose', name)}\n"
        f"delete it: {instance_command('delete', name)}"
    )
