"""What goes when an instance does: only what we make, whatever the state says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from provision.effects import DeleteInstance, DeleteObjects, Effect
from provision.errors import Refused


def instance_away(record: Mapping[str, Any]) -> Iterator[Effect]:
    """Yield what removes a recorded instance and its objects; raises Refused where the record names what we do not make."""
    project, instance, bucket = (str(record.get(key, "")) for key in ("project", "instance", "bucket"))
    zones = [str(record["zone"])] if record.get("zone") else [str(zone) for zone in record.get("zones", ())]
    if not instance.startswith("provision-") or not bucket.startswith("gs://") or not bucket.endswith(f"/{instance}/"):
        raise Refused(f"{instance or 'the instance'} is not ours to delete", why="the state names what we do not make", hint="look at the state file")
    yield from (DeleteInstance(f"projects/{project}/locations/{zone}/instances/{instance}") for zone in zones)
    yield DeleteObjects(bucket)


def report_folder(folder: Path, path: str) -> Path:
    """Return a recorded folder of reports; raises Refused where it lies outside our own."""
    if ".." in Path(path).parts or Path(path).is_absolute() or not path.startswith("reports/"):
        raise Refused(f"{path} does not lie in {folder}/reports", why="the state names a path outside our own folder", hint="look at the state file")
    return folder / path
