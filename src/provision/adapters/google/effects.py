"""Performs the effects on Google Cloud."""

from __future__ import annotations

from provision.adapters import files
from provision.adapters.google.client import GoogleClient
from provision.adapters.google.report_polling import PollingClock, await_report
from provision.effects.google import (
    AwaitReport,
    CreateInstance,
    DeleteInstance,
    DeleteObjects,
    ResizeDisk,
    StartInstance,
    StopInstance,
    UpdateInstance,
    UploadObjects,
)
from provision.effects.service import ServiceEffect
from provision.effects.system import ProgressCallback


def perform(
    effect: ServiceEffect, client: GoogleClient, clock: PollingClock, progress: ProgressCallback
) -> None:
    """Perform one effect. May block for an hour.

    Raises:
        CloudError: Google Cloud refused a call or cannot be reached.
        ReportUnavailable: no acceptable report came.
    """
    match effect:
        case UploadObjects():
            written = client.storage.upload(effect.objects)
            progress(f"upload: {len(written)} of {len(effect.objects)} files are new in the bucket")
        case DeleteObjects(prefix):
            count = client.storage.delete_folder(prefix)
            progress(f"delete: {count} objects below {prefix}")
        case CreateInstance():
            from provision.adapters.google.instance_creation import create_instance

            create_instance(client.operations(progress), effect)
        case UpdateInstance(name, body, mask):
            client.operations(progress).update(name, body, mask)
        case ResizeDisk(name, disk, size_gb):
            client.operations(progress).resize_disk(name, disk, size_gb)
        case StopInstance(name):
            client.operations(progress).stop(name)
        case StartInstance(name):
            client.operations(progress).start(name)
        case DeleteInstance(name, lineage):
            client.operations(progress).delete(name, lineage)
        case AwaitReport():
            report = await_report(effect, client, progress, clock)
            files.write(effect.report, report, 0o600)
        case _:
            raise AssertionError(f"internal error: unexpected effect for Google Cloud: {effect!r}")
