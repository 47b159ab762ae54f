"""Google's services as one: made when first asked for, and the deeds that a World performs on them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from provision.world.cloud import credentials as identity
from provision.world.cloud.endpoints import Endpoints
from provision.world.cloud.pace import LOOPBACK, Pace
from provision.world.cloud.reader import CloudReader, console

if TYPE_CHECKING:
    from provision.effects import Tell
    from provision.world.cloud.devices import Devices
    from provision.world.cloud.notebooks import Notebooks, OverRest
    from provision.world.cloud.placing import Placed
    from provision.world.cloud.rest import Rest
    from provision.world.cloud.storage import Storage


class Services:
    """The services at `endpoints`. Nothing is imported, opened or asked before it is used; `only_rest` leaves gRPC out."""

    def __init__(self, endpoints: Endpoints | None = None, pace: Pace | None = None, *, only_rest: bool = False) -> None:
        self._endpoints = endpoints or Endpoints()
        self._pace = pace or (LOOPBACK if self._endpoints.loopback else Pace())
        self._only_rest = only_rest

    @cached_property
    def credentials(self) -> Any:
        """Who we are; raises CloudError."""
        return identity.credentials(self._endpoints)

    @cached_property
    def rest(self) -> Rest:
        """The sender of REST calls."""
        from provision.world.cloud.rest import Rest

        return Rest(self.credentials, self._pace, loopback=self._endpoints.loopback)

    @cached_property
    def notebooks_rest(self) -> OverRest:
        """Notebooks v2 over REST alone."""
        from provision.world.cloud.notebooks import OverRest

        return OverRest(self.rest, self._endpoints.notebooks_rest)

    @cached_property
    def notebooks(self) -> Notebooks:
        """Notebooks v2 over gRPC where its messages hold every field, else over REST."""
        from provision.world.cloud.grpc import OverGrpc, expressible
        from provision.world.cloud.notebooks import Chosen

        if self._only_rest:
            return self.notebooks_rest
        return Chosen(self.notebooks_rest, OverGrpc(self.credentials, self._endpoints, self._pace), expressible)

    @cached_property
    def storage(self) -> Storage:
        """Cloud Storage."""
        from provision.world.cloud.storage import Storage

        return Storage(self.rest, self._endpoints.storage)

    @cached_property
    def devices(self) -> Devices:
        """Compute Engine, to look at."""
        from provision.world.cloud.devices import Devices

        return Devices(self.rest, self._endpoints.compute)

    @cached_property
    def reader(self) -> CloudReader:
        """What a Target may ask."""
        return CloudReader(self)

    def upload(self, objects: tuple[tuple[str, bytes], ...], tell: Tell) -> None:
        """Write objects that are not there with the same content. Raises CloudError."""
        written = self.storage.upload(objects)
        tell(f"upload: {len(written)} of {len(objects)} files are new in the bucket")

    def create(self, project: str, zones: tuple[str, ...], instance: str, body: Mapping[str, Any], request: str, tell: Tell, *, instead_of: str = "") -> Placed:
        """Create an instance in the first zone that takes it, or adopt ours. Raises provision.world.cloud.placing.Unplaced (a CloudError)."""
        from provision.world.cloud.placing import Wanted, create

        return create(self.notebooks, Wanted(project, zones, instance, body, request, instead_of), self._pace, tell, self._console)

    def update(self, name: str, body: Mapping[str, Any], mask: str, tell: Tell) -> None:
        """Change an instance in place, stopping and starting it where the fields need that. Raises CloudError."""
        from provision.world.cloud import instances

        instances.update(self.notebooks, name, body, mask, self._pace, tell, self._console)

    def resize(self, name: str, disk: str, size_gb: str, tell: Tell) -> None:
        """Make a disk of an instance larger. Raises CloudError."""
        from provision.world.cloud import instances

        instances.resize(self.notebooks, name, disk, size_gb, self._pace, tell)

    def stop(self, name: str, tell: Tell) -> None:
        """Stop an instance and wait until it is. Raises CloudError."""
        from provision.world.cloud import instances

        instances.stop(self.notebooks, name, self._pace, tell)

    def start(self, name: str, tell: Tell) -> None:
        """Start an instance and wait until it is ACTIVE. Raises CloudError."""
        from provision.world.cloud import instances

        instances.start(self.notebooks, name, self._pace, tell, self._console)

    def delete(self, name: str, tell: Tell, *, lineage: str | None = None) -> None:
        """Delete an instance and wait until it is gone; with a lineage only one that bears its label. Raises CloudError."""
        from provision.world.cloud import instances

        instances.delete(self.notebooks, name, self._pace, tell, lineage)

    def clear(self, prefix: str, tell: Tell) -> None:
        """Delete every object below a folder of ours. Raises CloudError."""
        tell(f"delete: {self.storage.clear(prefix)} objects below {prefix}")

    def _console(self, name: str) -> str:
        return console(self.reader.serial_output, name)
