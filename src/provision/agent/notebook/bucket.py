"""Writes to a bucket of Cloud Storage with the credentials of the notebook's user."""

from __future__ import annotations

import contextlib
import os
import urllib.error
import urllib.parse
import urllib.request
from importlib import import_module

_SCOPE = "https://www.googleapis.com/auth/devstorage.read_write"
_TIMEOUT_S = 120.0


class BucketError(Exception):
    """An object could not be written; the text is one line."""


def write_object(address: str, content: bytes) -> None:
    """Write an object; Colab may ask the user to sign in. May block. Raises BucketError."""
    bucket, _, name = address.removeprefix("gs://").partition("/")
    # As Google's clients do: an emulator gets no credentials.
    emulator = os.environ.get("STORAGE_EMULATOR_HOST")
    query = urllib.parse.urlencode({"uploadType": "media", "name": name})
    server = emulator or "https://storage.googleapis.com"
    url = f"{server}/upload/storage/v1/b/{bucket}/o?{query}"
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, content, headers, method="POST")
    if not emulator:
        # A redirect does not get the token.
        request.add_unredirected_header("Authorization", f"Bearer {_fetch_token()}")
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
            answer.read()
    except urllib.error.HTTPError as error:
        raise BucketError(f"the server returned HTTP {error.code} {error.reason}") from None
    except (OSError, ValueError) as error:
        raise BucketError(str(getattr(error, "reason", error))) from None


def _fetch_token() -> str:
    """Return an access token. Source: googlecolab/colabtools, auth.py."""
    try:
        # Another kernel has the credentials of its machine.
        with contextlib.suppress(ImportError):
            import_module("google.colab.auth").authenticate_user()
        google_auth = import_module("google.auth")
        transport = import_module("google.auth.transport.requests")
        credentials, _ = google_auth.default(scopes=[_SCOPE])
        credentials.refresh(transport.Request())
        return str(credentials.token)
    except Exception as error:  # noqa: BLE001
        raise BucketError(f"no credentials for Google Cloud ({type(error).__name__})") from None
