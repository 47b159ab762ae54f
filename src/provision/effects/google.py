"""The effects on Google Cloud and on Colab, and what may be asked of Google Cloud.

A `name` is projects/PROJECT/locations/ZONE/instances/INSTANCE; a body is the REST JSON of
Notebooks v2. Each effect names everything it needs; performing
one twice is safe.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol


class UploadObjects(NamedTuple):
    """Write objects (gs:// address and content) to Cloud Storage, those that are there with the
    same content left alone.
    """

    objects: tuple[tuple[str, bytes], ...]


class CreateInstance(NamedTuple):
    """Create an instance in the first of these zones that has the machine, and wait until it is
    ACTIVE; a failed shell goes before the next zone is tried.

    `request` is the UUID that makes a repeated call the same request. One of our state that
    exists under this name in any of the zones is taken as it is.
    `instead_of` is the full name of one that was deleted for it, "" where none was.
    """

    project: str
    zones: tuple[str, ...]
    instance: str
    body: Mapping[str, Any]
    request: str
    instead_of: str = ""


class UpdateInstance(NamedTuple):
    """Change fields of an instance in place: `body` holds no more than `mask` names (paths as in
    gceSetup.metadata, joined by commas).
    """

    name: str
    body: Mapping[str, Any]
    mask: str


class ResizeDisk(NamedTuple):
    """Make a disk ("bootDisk", "dataDisk") of an instance larger; nothing happens when it has that
    size already. What lies on it stays.
    """

    name: str
    disk: str
    size_gb: str


class StopInstance(NamedTuple):
    """Stop an instance and wait until it is; nothing happens when it is stopped already."""

    name: str


class StartInstance(NamedTuple):
    """Start an instance and wait until it is ACTIVE; nothing happens when it is already."""

    name: str


class DeleteInstance(NamedTuple):
    """Delete an instance with its disks and wait until it is gone; nothing happens when it is gone
    already.

    One that does not bear the label of this lineage belongs to another state by now, and is left
    alone.
    """

    name: str
    lineage: str


class DeleteObjects(NamedTuple):
    """Delete every object in Cloud Storage below an address of ours that ends in a slash."""

    prefix: str


class AwaitReport(NamedTuple):
    """Wait at most `timeout_s` seconds for the report of one run on a device, of these `verify_s`
    for its verification, and file it at `report`.

    `bucket_uri` is the folder of the run (gs://BUCKET/PREFIX/INSTANCE/NONCE/). Only what carries
    `nonce`, and the sha256 that the device told, is accepted.
    """

    name: str
    project: str
    zone: str
    bucket_uri: str
    nonce: str
    report: Path
    timeout_s: int
    verify_s: int


class RunOnColab(NamedTuple):
    """Take a Colab machine as `session`, run a cell on it until it is done, file its report at
    `report`, and give the machine back in every ending.

    `gpu` is Colab's own name ("T4"; "" for none). `folder` holds what is known of the session.
    Only a report that carries `nonce` and the lock digest `lock`
    is accepted. `timeout_s` is for one run of the cell. `keep` leaves the machine running once a
    report came.
    """

    session: str
    gpu: str
    high_memory: bool
    cell: bytes
    nonce: str
    lock_digest: str
    folder: Path
    report: Path
    timeout_s: int
    keep_session: bool = False


class StopColabSession(NamedTuple):
    """Give a Colab machine back that was taken as `session`; nothing happens when it is gone
    already.
    """

    session: str
    folder: Path


ColabEffect = RunOnColab | StopColabSession
InstanceEffect = (
    CreateInstance | UpdateInstance | ResizeDisk | StopInstance | StartInstance | DeleteInstance
)
GoogleCloudEffect = UploadObjects | InstanceEffect | DeleteObjects | AwaitReport


class CloudReader(Protocol):
    """What may be asked of Google Cloud without changing it. All of it raises CloudError
    (credentials, roles, a switched off API) with the way out.
    """

    def instance(self, name: str) -> Mapping[str, Any] | None:
        """Return an instance as Notebooks v2 tells it, None when there is none."""

    def instances(self, project: str) -> tuple[Mapping[str, Any], ...]:
        """Return the instances of a project in all zones."""

    def last_operation(self, name: str) -> Mapping[str, Any] | None:
        """Return the newest operation on an instance (done, error, metadata.verb), None when there
        is none or none can be listed.
        """

    def config(self, project: str, zone: str) -> Mapping[str, Any] | None:
        """Return what Workbench offers in a zone (getConfig); None when that cannot be told."""

    def guest_attributes(self, name: str, namespace: str) -> dict[str, str] | None:
        """Return the guest attributes of an instance; {} when none is written yet, None when they
        cannot be read (switched off, no role).
        """

    def serial_output(self, name: str, start: int) -> tuple[str, int]:
        """Return the serial console's text from a position on, and the position after it."""

    def object(self, uri: str, limit: int) -> bytes | None:
        """Return an object of Cloud Storage, at most `limit` bytes; None when there is none."""

    def quotas(self, project: str, region: str) -> tuple[Mapping[str, Any], ...] | None:
        """Return the quotas of a region (metric, limit, usage); None when they cannot be read."""

    def accelerator_types(self, project: str, zone: str) -> tuple[Mapping[str, Any], ...] | None:
        """Return the accelerators that a zone has at all (name, maximumCardsPerInstance); None when
        that cannot be read.
        """
