"""The effects on Google Cloud, and the protocol for reading from it.

A `name` is projects/PROJECT/locations/ZONE/instances/INSTANCE; a body is the REST JSON of
Notebooks v2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from provision.effects.service import ServiceEffect


@dataclass(frozen=True, slots=True)
class GoogleEffect(ServiceEffect):
    """A change in a Google Cloud project."""

    service: ClassVar[str] = "provision.adapters.services:perform_on_google"


@dataclass(frozen=True, slots=True)
class UploadObjects(GoogleEffect):
    """Write objects (gs:// address, content) to Cloud Storage unless they have that content."""

    objects: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True)
class CreateInstance(GoogleEffect):
    """Create an instance in the first zone that has the machine, and wait until it is ACTIVE.

    What a failed attempt leaves is deleted before the next zone is tried. An instance of the same
    state that already has this name in one of the zones is adopted.

    `request` is the UUID by which the service recognizes a repeated call. `instead_of` is the full
    name of the instance that was deleted in favour of this one, or "".
    """

    is_billable: ClassVar[bool] = True

    project: str
    zones: tuple[str, ...]
    instance: str
    body: Mapping[str, Any]
    request: str
    instead_of: str = ""


@dataclass(frozen=True, slots=True)
class UpdateInstance(GoogleEffect):
    """Change fields of an instance in place.

    `mask` lists the paths of the changed fields, joined by commas (gceSetup.metadata); `body`
    contains only these.
    """

    name: str
    body: Mapping[str, Any]
    mask: str


@dataclass(frozen=True, slots=True)
class ResizeDisk(GoogleEffect):
    """Enlarge a disk ("bootDisk", "dataDisk") of an instance, keeping its content."""

    name: str
    disk: str
    size_gb: str


@dataclass(frozen=True, slots=True)
class StopInstance(GoogleEffect):
    """Stop an instance and wait until it is stopped."""

    name: str


@dataclass(frozen=True, slots=True)
class StartInstance(GoogleEffect):
    """Start an instance and wait until it is ACTIVE."""

    name: str


@dataclass(frozen=True, slots=True)
class DeleteInstance(GoogleEffect):
    """Delete an instance with its disks and wait until it is gone.

    An instance without the label of `lineage` belongs to another state and is left alone.
    """

    name: str
    lineage: str


@dataclass(frozen=True, slots=True)
class DeleteObjects(GoogleEffect):
    """Delete every object in Cloud Storage below `prefix`, an address that ends in a slash."""

    prefix: str


@dataclass(frozen=True, slots=True)
class AwaitReport(GoogleEffect):
    """Wait for the report of a run on a device, and write it to `report`.

    A report is accepted if it carries `nonce` and has the sha256 that the device announced.
    `bucket_uri` is the folder of the run (gs://BUCKET/PREFIX/INSTANCE/NONCE/). `timeout_s` limits
    the whole wait, `verify_s` the part of it that is the verification.
    """

    name: str
    project: str
    zone: str
    bucket_uri: str
    nonce: str
    report: Path
    timeout_s: int
    verify_s: int


@dataclass(frozen=True, slots=True)
class ImageDescription:
    """A container image as its registry describes it.

    Attributes:
        platforms: Its platforms, such as linux/amd64: only that one if the image has it. () if the
            registry does not have the image.
        python: Its variable PYTHON_VERSION; "" if there is none.
        unknown: Why the registry did not describe it; "" if it did.
    """

    platforms: tuple[str, ...] = ()
    python: str = ""
    unknown: str = ""


class CloudReader(Protocol):
    """Reads from Google Cloud without changing anything.

    Every method may block for minutes while it retries, and raises a CloudError with a hint if
    credentials, a role or an enabled API is missing, or the service cannot be reached.
    """

    def instance(self, name: str) -> Mapping[str, Any] | None:
        """Return an instance as Notebooks v2 describes it, None if it does not exist."""

    def instances(self, project: str) -> tuple[Mapping[str, Any], ...]:
        """Return the instances of a project in all zones."""

    def template(self, name: str) -> Mapping[str, Any] | None:
        """Return a runtime template as aiplatform v1 describes it, None if it does not exist."""

    def templates(self, project: str, region: str) -> tuple[Mapping[str, Any], ...]:
        """Return the runtime templates of a project in a region."""

    def execution(self, name: str) -> Mapping[str, Any] | None:
        """Return a notebook execution job of aiplatform v1, None if it does not exist."""

    def executions(self, project: str, region: str) -> tuple[Mapping[str, Any], ...]:
        """Return the notebook execution jobs of a project in a region."""

    def jobs(self, project: str, region: str, label: str) -> tuple[Mapping[str, Any], ...]:
        """Return the custom jobs of a project in a region with a label ("KEY=VALUE")."""

    def last_operation(self, name: str) -> Mapping[str, Any] | None:
        """Return the newest operation (done, error, metadata.verb) on an instance.

        None if the instance has no operations or they cannot be listed.
        """

    def config(self, project: str, zone: str) -> Mapping[str, Any] | None:
        """Return what Workbench offers in a zone (getConfig), None if it cannot be read."""

    def guest_attributes(self, name: str, namespace: str) -> dict[str, str] | None:
        """Return the guest attributes of an instance, without the namespace.

        {} if nothing is written yet, None if they cannot be read (switched off, missing role).
        """

    def console(self, name: str) -> str:
        """Return the latest text of the serial console, "" if it cannot be read; never raises."""

    def object(self, uri: str, limit: int) -> bytes | None:
        """Return an object of Cloud Storage, None if it does not exist.

        Raises:
            CloudError: the object is longer than `limit` bytes (kind "too-long").
        """

    def object_uris(self, prefix: str) -> tuple[str, ...] | None:
        """Return the addresses of the objects that begin with a prefix (gs://BUCKET/...).

        () for a bucket that does not exist, None if it cannot be listed.
        """

    def bucket(self, name: str) -> Mapping[str, Any] | None:
        """Return a bucket of Cloud Storage (location, locationType).

        None if it does not exist or cannot be read.
        """

    def quotas(self, project: str, region: str) -> tuple[Mapping[str, Any], ...] | None:
        """Return the quotas of a region (metric, limit, usage), None if they cannot be read."""

    def job_quotas(self, project: str) -> Mapping[str, Mapping[str, int]] | None:
        """Return the limits of the quotas of custom jobs, None if they cannot be read.

        They are by metric, such as custom_model_training_cpus, and by region; "" is that of all
        other regions. -1 means unlimited. How much is used is not known.
        """

    def image(self, image: str) -> ImageDescription:
        """Return the description of a container image in its registry; reads no layer.

        A registry that cannot be reached, or refuses access, leaves it unknown.
        """

    def accelerator_types(self, project: str, zone: str) -> tuple[Mapping[str, Any], ...] | None:
        """Return the accelerators of a zone (name, maximumCardsPerInstance).

        None if they cannot be read.
        """
