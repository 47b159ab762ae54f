"""Location of the bucket that an execution job reads its notebook from and writes its report to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from provision.effects.system import Reader
from provision.kinds.base import Refusal


def read_bucket(uri: str | None, reader: Reader) -> Mapping[str, Any]:
    """Return the bucket of a gs:// address; {} if there is none, or it cannot be read."""
    if uri is None:
        return {}
    return reader.cloud().bucket(uri.removeprefix("gs://").partition("/")[0]) or {}


def refuse_bucket(
    bucket: Mapping[str, Any], region: str, route: tuple[str | int, ...]
) -> Iterator[Refusal]:
    """Yield the refusal of a bucket that is not in one region.

    Vertex AI documentation, Locations: buckets must be regional, multi- and dual-regional ones are
    not supported.
    """
    kind = str(bucket.get("locationType", "region"))
    if kind != "region":
        name, location = bucket.get("name", "the bucket"), bucket.get("location", "")
        yield Refusal(
            route,
            f"bucket {name} is in the {kind} {location}, but Vertex AI can only use buckets in "
            "a single region",
            f"create one with `gcloud storage buckets create gs://NAME --location={region}`, "
            "and set `bucket` to it",
        )


def note_distant_bucket(bucket: Mapping[str, Any], region: str) -> Iterator[str]:
    """Yield the note that a bucket is in another region than the job."""
    location = str(bucket.get("location", "")).lower()
    if bucket.get("locationType") == "region" and location != region:
        yield (
            f"bucket: it is in {location}, not in {region}, so data is transferred between regions"
        )
