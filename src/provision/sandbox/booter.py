"""Whoever runs the devices: what the services ask of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from provision.sandbox.faults import Faults
from provision.sandbox.store import Store


class Booter(Protocol):
    """Runs what an instance would run. Both are called outside the store's lock, may be called
    twice, and return soon: a boot goes on by itself.
    """

    def start(self, store: Store, name: str, endpoints: Mapping[str, str], faults: Faults) -> None:
        """Boot the device of an instance (its full name): it was created, started or reset.

        When what runs at the start has ended, note it: `store.note(name, booted=True)`. Else the
        next process that runs the sandbox boots it again.
        """

    def stop(self, name: str) -> None:
        """End the device of an instance that is stopped, reset or deleted."""

    def close(self) -> None:
        """End every device and wait until it has ended; none is booted any more. Called when the
        sandbox ends.
        """


class NullBooter:
    """Runs nothing: instances turn ACTIVE and stay silent."""

    def start(self, store: Store, name: str, endpoints: Mapping[str, str], faults: Faults) -> None:
        """Do nothing."""

    def stop(self, name: str) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""
