"""What Compute Engine tells of a device and its place: guest attributes, serial console,
accelerator types, quotas. Only asked, never changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from provision.adapters.google.errors import CloudError
from provision.adapters.google.rest import RestClient, resource_path

_UNAVAILABLE_KINDS = (
    "permission",
    "refused",
    "policy",
    "api-disabled",
    "act-as",
    "project",
    "billing",
)
"""What no call of ours changes: then the answer is "cannot be told"."""


class ComputeApi:
    """Compute Engine's API, as far as Workbench leaves a question open."""

    def __init__(self, rest: RestClient, address: str) -> None:
        self._rest = rest
        self._base = f"{address}/compute/v1/"

    def guest_attributes(self, name: str, namespace: str) -> dict[str, str] | None:
        """Return key and value of the attributes in a namespace: {} when none is written, None when
        they cannot be read.
        """
        try:
            found = self._rest.get_or_none(
                f"{self._base}{resource_path(vm_name(name))}/getGuestAttributes",
                {"queryPath": f"{namespace}/"},
            )
        except CloudError as error:
            _raise_unless_unavailable(error)
            return None
        items = (found or {}).get("queryValue", {}).get("items", ())
        return {
            str(one.get("key", "")): str(one.get("value", ""))
            for one in items
            if one.get("namespace", namespace) == namespace
        }

    def serial_output(self, name: str, start: int) -> tuple[str, int]:
        """Return the text of the first serial port from a position on and the position after it;
        ("", start) where it cannot be read.
        """
        try:
            found = (
                self._rest.get_or_none(
                    f"{self._base}{resource_path(vm_name(name))}/serialPort",
                    {"port": "1", "start": str(start)},
                )
                or {}
            )
        except CloudError as error:
            _raise_unless_unavailable(error, "not-found")
            found = {}
        return str(found.get("contents", "")), int(found.get("next", start))

    def accelerator_types(self, project: str, zone: str) -> tuple[Mapping[str, Any], ...] | None:
        """Return the accelerators of a zone (name, maximumCardsPerInstance); None when that cannot
        be read.
        """
        try:
            pages = list(
                self._rest.pages(
                    self._base + resource_path(f"projects/{project}/zones/{zone}/acceleratorTypes")
                )
            )
        except CloudError as error:
            _raise_unless_unavailable(error, "not-found")
            return None
        return tuple(one for page in pages for one in page.get("items", ()))

    def quotas(self, project: str, region: str) -> tuple[Mapping[str, Any], ...] | None:
        """Return the quotas of a region (metric, limit, usage); None when they cannot be read."""
        try:
            found = self._rest.get_or_none(
                self._base + resource_path(f"projects/{project}/regions/{region}")
            )
        except CloudError as error:
            _raise_unless_unavailable(error)
            return None
        return None if found is None else tuple(found.get("quotas", ()))


def vm_name(name: str) -> str:
    """Return the path of the virtual machine of a Workbench instance: it bears the same name in the
    same zone.
    """
    _, project, _, zone, _, instance = name.split("/")
    return f"projects/{project}/zones/{zone}/instances/{instance}"


def _raise_unless_unavailable(error: CloudError, *also: str) -> None:
    """Let pass what means that something cannot be told; raise what a person must know."""
    if error.failure.kind not in (*_UNAVAILABLE_KINDS, *also):
        raise error
