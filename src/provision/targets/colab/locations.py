"""Where a cell finds its payload, and where it copies its report."""

from __future__ import annotations

import hashlib
from urllib.parse import quote

from provision.kinds.drive import MY_DRIVE, find_mount
from provision.targets.colab.file_names import build_file_stem, get_colab_target
from provision.targets.colab.github_link import GithubFile
from provision.targets.context import TargetContext

REPORT_FOLDER = f"{MY_DRIVE}/provision"
"""The folder of reports on Drive: a declared folder is for the user's own files only."""
_NONCE_DIGITS = 12


def get_drive_mount(context: TargetContext) -> str | None:
    """Return where the cell mounts Drive; None if no path is on it, or nobody can allow it."""
    is_allowed = get_colab_target(context).via == "browser"
    return find_mount(context.spec.paths) if is_allowed else None


def get_report_location(context: TargetContext, nonce: str) -> str | None:
    """Return the object or the file on Drive that the cell copies its report to; None for neither.

    `via: colab-cli` downloads the report.
    """
    target, stem = get_colab_target(context), build_file_stem(context)
    if target.via == "colab-cli":
        return None
    if target.bucket is not None:
        return f"{get_bucket_folder(context, nonce)}report.json"
    if get_drive_mount(context) is not None:
        return f"{REPORT_FOLDER}/{stem}-{nonce[:_NONCE_DIGITS]}.report.json"
    return None


def split_report_location(location: str) -> tuple[str, str]:
    """Return the object of a report, and its file as Drive for desktop names it; "" for neither."""
    if location.startswith("gs://"):
        return location, ""
    return "", location.replace(MY_DRIVE, "My Drive", 1)


def get_bucket_folder(context: TargetContext, nonce: str) -> str:
    """Return the address of a rendering's folder in the bucket, with a slash at its end."""
    bucket = (get_colab_target(context).bucket or "").rstrip("/")
    return f"{bucket}/{build_file_stem(context)}/{nonce}/"


def get_payload_object(context: TargetContext, nonce: str, sha256: str) -> str:
    """Return the address of a payload in the declared bucket."""
    return f"{get_bucket_folder(context, nonce)}{sha256[:_NONCE_DIGITS]}.payload"


def list_github_addresses(file: GithubFile, payload: bytes) -> list[str]:
    """Return the addresses of a payload's file in its repository.

    The first one is the file on the default branch, and is not rate-limited like the second: the
    file by its hash, on any branch (docs.github.com, REST API endpoints for Git blobs; rate limits
    for the REST API). Neither contains a branch or a commit, which differ between checkouts.
    """
    blob = hashlib.sha1(b"blob %d\0" % len(payload) + payload, usedforsecurity=False).hexdigest()
    return [
        f"https://raw.githubusercontent.com/{file.owner}/{file.repository}/HEAD/{quote(file.path)}",
        f"https://api.github.com/repos/{file.owner}/{file.repository}/git/blobs/{blob}",
    ]
