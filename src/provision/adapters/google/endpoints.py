"""The addresses of Google's services, or of their emulator on loopback."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from typing import NamedTuple, Self
from urllib.parse import urlsplit


class Endpoints(NamedTuple):
    """Addresses of the services, without a path; the defaults are Google's."""

    notebooks_rest: str = "https://notebooks.googleapis.com"
    notebooks_grpc: str = "notebooks.googleapis.com:443"
    compute: str = "https://compute.googleapis.com"
    storage: str = "https://storage.googleapis.com"
    secrets: str = "https://secretmanager.googleapis.com"
    serviceusage: str = "https://serviceusage.googleapis.com"
    registry: str = "https://{host}"
    """Registries of container images; the emulator is all of them."""
    aiplatform: str = "https://{region}-aiplatform.googleapis.com"
    aiplatform_grpc: str = "{region}-aiplatform.googleapis.com:443"
    """Vertex AI has an address for each region."""

    @classmethod
    def from_addresses(cls, addresses: Mapping[str, str]) -> Self:
        """Return the endpoints of an emulator; other keys are ignored."""
        return cls(**{key: addresses[key] for key in cls._fields})

    @property
    def is_loopback(self) -> bool:
        """True if all of them are on this machine; then, and only then, no credentials are sent.

        Raises:
            ValueError: they are mixed: credentials must never go to an address that is not
            Google's.
        """
        here = {_is_local(address) for address in self}
        if here == {False} and all(
            urlsplit(address).scheme == "https" for address in self if "://" in address
        ):
            return False
        if here == {True}:
            return True
        raise ValueError("endpoints must be either all loopback or all HTTPS")


def _is_local(address: str) -> bool:
    host = urlsplit(address if "://" in address else f"//{address}").hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
