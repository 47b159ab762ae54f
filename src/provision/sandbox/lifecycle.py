"""What becomes of instances as time goes: operations end, states follow, devices boot and end."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from provision.sandbox import operations
from provision.sandbox.booter import Booter
from provision.sandbox.faults import Faults
from provision.sandbox.store import Store

Body = dict[str, Any]
BOOTED_NOTE = "booted"


class Delays(NamedTuple):
    """Seconds that things take: an operation, from its end to ACTIVE, and until a new instance
    stands in lists.
    """

    operation: float = 0.0
    active: float = 0.0
    listed: float = 0.0


class Lifecycle:
    """The states of one store's instances. `endpoints` are told to the devices."""

    def __init__(self, store: Store, faults: Faults, booter: Booter, delays: Delays) -> None:
        self.endpoints: dict[str, str] = {}
        self.delays = delays
        self._store, self._faults, self._booter = store, faults, booter

    def operation_end_time(self) -> float:
        """Return when an operation that begins now ends, in seconds since the epoch."""
        return (
            operations.ENDLESS if self._faults.has("hang") else time.time() + self.delays.operation
        )

    def run_due_operations(self) -> None:
        """Let everything happen whose time has come, and boot or end the devices it concerns."""
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
        """Boot the devices whose boot was cut short: the process that ran the sandbox has ended,
        and nobody noted `booted`.
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
        name, verb = record["target"], record["verb"]
        target = data["instances"].get(name)
        if target is None or record["outcome"] is not None:
            if target is not None and "before" in record:
                target["body"]["state"] = record["before"]
            operations.complete(record, None)
            return []
        if record.get("idle"):
            operations.complete(record, dict(target["body"]))
            return []
        if verb == "delete":
            operations.complete(record, None)
            self._store.delete_instance(name)
            return [lambda: self._booter.stop(name)]
        calls = self._changed(name, verb, target)
        operations.complete(record, dict(target["body"]))
        return calls

    def _changed(self, name: str, verb: str, target: Body) -> list[Callable[[], None]]:
        """Do to an instance what an operation that ends well does, and return what is to be done
        with its device.
        """
        if verb in ("update", "resize"):
            target["body"] = {
                **target.pop("next", target["body"]),
                "state": target["body"]["state"],
            }
            return []
        if verb == "stop":
            target.update(active=None, boots=False)
            target["body"]["state"] = "STOPPED"
            return [lambda: self._booter.stop(name)]
        if verb not in ("create", "start", "reset"):
            return []
        if verb == "create" and self._faults.has("stuck-provisioning"):
            return []
        target["body"]["state"] = "PROVISIONING"
        target.update(active=time.time() + self.delays.active, boots=True)
        target.setdefault("notes", {}).pop(BOOTED_NOTE, None)
        again: list[Callable[[], None]] = (
            [lambda: self._booter.stop(name)] if verb == "reset" else []
        )
        return [*again, lambda: self._boot(name)]

    def _boot(self, name: str) -> None:
        self._booter.start(self._store, name, self.endpoints, self._faults)


def mark_active(body: Body) -> None:
    """Let an instance be ACTIVE."""
    body.update(state="ACTIVE", healthState="HEALTHY")
    if not body.get("disableProxyAccess"):
        body["proxyUri"] = (
            f"{body['id'][:16].replace('-', '')}-dot-{body['name'].split('/')[3].rsplit('-', 1)[0]}.notebooks.googleusercontent.com"  # noqa: E501
        )
