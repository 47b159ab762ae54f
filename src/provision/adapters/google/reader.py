"""What is asked of Google Cloud without changing it: provision.effects.CloudReader over the
services.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from provision.adapters.google.endpoints import Endpoints
from provision.adapters.google.errors import CloudError
from provision.adapters.google.instances import find_instance
from provision.adapters.google.operations import latest_operation

if TYPE_CHECKING:
    from provision.adapters.google.client import GoogleClient

__all__ = ["CloudReader", "Endpoints"]
_TAIL = 65536


class CloudReader:
    """Google Cloud, looked at. All of it raises CloudError (credentials, roles, a switched off API)
    with the way out.

    `missed` names the zones that the last `instances` had no answer from.
    """

    def __init__(self, services: GoogleClient) -> None:
        self._services = services
        self.unreachable_zones: tuple[str, ...] = ()

    def instance(self, name: str) -> Mapping[str, Any] | None:
        """Return an instance as Notebooks v2 returns it, None when neither a GET nor a list shows
        it.
        """
        return find_instance(self._services.notebooks, name)

    def instances(self, project: str) -> tuple[Mapping[str, Any], ...]:
        """Return the instances of a project in all zones that answer."""
        found, self.unreachable_zones = self._services.notebooks.list(
            f"projects/{project}/locations/-"
        )
        return found

    def last_operation(self, name: str) -> Mapping[str, Any] | None:
        """Return the newest operation on an instance, None when there is none or none can be
        listed.
        """
        return latest_operation(self._services.notebooks, name)

    def config(self, project: str, zone: str) -> Mapping[str, Any] | None:
        """Return what Workbench offers in a zone (getConfig): machine types, accelerators, images;
        None when that cannot be told.
        """
        try:
            return self._services.notebooks_rest.config(f"projects/{project}/locations/{zone}")
        except CloudError as error:
            if error.failure.kind in ("refused", "permission"):
                return None
            raise

    def guest_attributes(self, name: str, namespace: str) -> dict[str, str] | None:
        """Return the guest attributes of an instance; {} when none is written yet, None when they
        cannot be read (switched off, no role).
        """
        return self._services.compute.guest_attributes(name, namespace)

    def serial_output(self, name: str, start: int) -> tuple[str, int]:
        """Return the serial console's text from a position on, and the position after it."""
        return self._services.compute.serial_output(name, start)

    def object(self, uri: str, limit: int) -> bytes | None:
        """Return an object of Cloud Storage, at most `limit` bytes; None when there is none."""
        return self._services.storage.get(uri, limit)

    def quotas(self, project: str, region: str) -> tuple[Mapping[str, Any], ...] | None:
        """Return the quotas of a region (metric, limit, usage); None when they cannot be read."""
        return self._services.compute.quotas(project, region)

    def accelerator_types(self, project: str, zone: str) -> tuple[Mapping[str, Any], ...] | None:
        """Return the accelerators that a zone has at all (name, maximumCardsPerInstance); None when
        that cannot be read.
        """
        return self._services.compute.accelerator_types(project, zone)


def read_serial_console(serial_output: Callable[[str, int], tuple[str, int]], name: str) -> str:
    """Return the last 64 KiB of an instance's serial console; "" where it cannot be read."""
    text, position = "", 0
    try:
        for _ in range(32):
            more, position = serial_output(name, position)
            text = (text + more)[-_TAIL:]
            if not more:
                break
    except CloudError:
        return ""
    return text
