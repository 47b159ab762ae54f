"""The base class of the programs that run devices."""

from __future__ import annotations

from collections.abc import Mapping

from provision.sandbox.faults import Faults
from provision.sandbox.store import Store


class Booter:
    """Runs the programs of instances; this one runs nothing, so that they produce no output.

    All methods are called outside the store's lock, may be called twice, and return soon: a boot
    continues in the background.
    """

    def start(self, store: Store, name: str, endpoints: Mapping[str, str], faults: Faults) -> None:
        """Boot the device of an instance (full name) that was created, started or reset.

        When its startup has ended, call `store.note(name, booted=True)`. Otherwise the next process
        that runs the sandbox boots it again.
        """

    def stop(self, name: str) -> None:
        """End the device of an instance that is stopped or reset."""

    def delete(self, name: str) -> None:
        """End the device of a deleted instance, and remove its disks."""
        self.stop(name)

    def close(self) -> None:
        """End every device, wait for it, and boot no more. Called when the sandbox ends."""
