"""State changes over time: operations end, states follow, devices boot and end."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from provision.sandbox import operations
from provision.sandbox.booter import Booter
from provision.sandbox.faults import Faults
from provision.sandbox.store import Store

Body = dict[str, Any]
BOOTED_NOTE = "booted"
_GRACE_S = 15.0
"""A Spot machine ends 30 s after the notice. GKE, whose nodes the machines of jobs are, leaves the
first 15 s to containers that are not its own:
https://docs.cloud.google.com/kubernetes-engine/docs/concepts/spot-vms
"""


class Delays(NamedTuple):
    """Seconds until an operation ends, from then to ACTIVE, and until a new instance is listed.

    Every call is answered after `answer` seconds. A machine that is reclaimed is killed `grace`
    seconds after SIGTERM.
    """

    operation: float = 0.0
    active: float = 0.0
    listed: float = 0.0
    answer: float = 0.0
    grace: float = _GRACE_S


class Lifecycle:
    """The states of a store's instances; devices get `endpoints`."""

    def __init__(self, store: Store, faults: Faults, booter: Booter, delays: Delays) -> None:
        self.endpoints: dict[str, str] = {}
        self.delays = delays
        self._store, self._faults, self._booter = store, faults, booter

    def operation_end_time(self) -> float:
        """Return the end of an operation that begins now, in seconds since the epoch."""
        return (
            operations.ENDLESS if self._faults.has("hang") else time.time() + self.delays.operation
        )

    def run_due_operations(self) -> None:
        """Apply everything that is due, and boot or end the affected devices."""
        calls: list[Callable[[], None]] = []
        with self._store.read_data() as data:
            due = [
                record
                for record in data["operations"].values()
                if not record["done"] and record["due"] <= time.time()
            ]
            if not due:
                return
            with self._store.edit_data():
                for record in due:
                    calls += self._end(data, record)
        for call in calls:
            call()

    def boot_interrupted_devices(self) -> None:
        """Boot the devices whose boot was interrupted.

        The process that ran the sandbox ended before `booted` was noted.
        """
        self.run_due_operations()
        with self._store.read_data() as data:
            names = [
                name
                for name, record in data["instances"].items()
                if record["boots"] and not record.get("notes", {}).get(BOOTED_NOTE)
            ]
        for name in names:
            self._boot(name)

    def _end(self, data: Body, record: Body) -> list[Callable[[], None]]:
        """End a due operation, and return the actions for its device."""
        name, verb = record["target"], record["verb"]
        target = data["instances"].get(name)
        if target is None or record["outcome"] is not None:
            if target is not None and "before" in record:
                target["body"]["state"] = record["before"]
            operations.complete(record, None)
            return []
        calls: list[Callable[[], None]] = []
        if verb in ("stop", "reset") and not record.get("idle"):
            calls.append(partial(self._booter.stop, name))
        if verb == "delete":
            calls.append(partial(self._booter.delete, name))
            operations.complete(record, None)
            self._store.delete_instance(name)
            return calls
        if not record.get("idle") and self._apply(verb, target):
            calls.append(partial(self._boot, name))
        operations.complete(record, dict(target["body"]))
        return calls

    def _apply(self, verb: str, target: Body) -> bool:
        """Apply a successful operation to an instance; return whether its device boots."""
        body = target["body"]
        if verb in ("update", "resize"):
            target["body"] = {**target.pop("next", body), "state": body["state"]}
        elif verb == "stop":
            target.update(active=None, boots=False)
            body["state"] = "STOPPED"
        elif verb in ("start", "reset") or (
            verb == "create" and not self._faults.has("stuck-provisioning")
        ):
            body["state"] = "PROVISIONING"
            target.update(active=time.time() + self.delays.active, boots=True)
            target.setdefault("notes", {}).pop(BOOTED_NOTE, None)
            return True
        return False

    def _boot(self, name: str) -> None:
        self._booter.start(self._store, name, self.endpoints, self._faults)


def mark_active(body: Body) -> None:
    """Set the state of an instance to ACTIVE."""
    body.update(state="ACTIVE", healthState="HEALTHY")
    if not body.get("disableProxyAccess"):
        prefix = body["id"][:16].replace("-", "")
        region = body["name"].split("/")[3].rsplit("-", 1)[0]
        body["proxyUri"] = f"{prefix}-dot-{region}.notebooks.googleusercontent.com"
