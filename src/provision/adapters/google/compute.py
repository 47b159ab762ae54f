"""Reads from Compute Engine: guest attributes, serial console, accelerators and quotas."""

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
"""Failures of a read that mean "unknown": the caller goes on without the value."""
_CONSOLE_LENGTH = 65536
_CONSOLE_PAGES = 32


class ComputeApi:
    """The read-only calls of Compute Engine's API, for the machine behind an instance."""

    def __init__(self, rest: RestClient, address: str) -> None:
        self._rest = rest
        self._base = f"{address}/compute/v1/"

    def guest_attributes(self, name: str, namespace: str) -> dict[str, str] | None:
        """Return the attributes of a namespace, {} if none is written, None if unreadable."""
        try:
            document = self._rest.get_or_none(
                f"{self._base}{resource_path(vm_name(name))}/getGuestAttributes",
                {"queryPath": f"{namespace}/"},
            )
        except CloudError as error:
            _raise_unless_unavailable(error)
            return None
        items = (document or {}).get("queryValue", {}).get("items", ())
        return {
            str(item.get("key", "")): str(item.get("value", ""))
            for item in items
            if item.get("namespace", namespace) == namespace
        }

    def serial_output(self, name: str, start: int) -> tuple[str, int]:
        """Return the text of the first serial port from a position on, and the next position.

        ("", start) if it cannot be read.
        """
        url = f"{self._base}{resource_path(vm_name(name))}/serialPort"
        try:
            document = self._rest.get_or_none(url, {"port": "1", "start": str(start)}) or {}
        except CloudError as error:
            _raise_unless_unavailable(error, "not-found")
            document = {}
        return str(document.get("contents", "")), int(document.get("next", start))

    def console(self, name: str) -> str:
        """Return the last 64 KiB of the serial console, "" if it cannot be read."""
        text, position = "", 0
        try:
            for _ in range(_CONSOLE_PAGES):
                page, position = self.serial_output(name, position)
                text = (text + page)[-_CONSOLE_LENGTH:]
                if not page:
                    break
        except CloudError:
            return ""
        return text

    def accelerator_types(self, project: str, zone: str) -> tuple[Mapping[str, Any], ...] | None:
        """Return the accelerators of a zone, None if they cannot be read."""
        path = resource_path(f"projects/{project}/zones/{zone}/acceleratorTypes")
        try:
            pages = list(self._rest.pages(self._base + path))
        except CloudError as error:
            _raise_unless_unavailable(error, "not-found")
            return None
        return tuple(item for page in pages for item in page.get("items", ()))

    def quotas(self, project: str, region: str) -> tuple[Mapping[str, Any], ...] | None:
        """Return the quotas of a region, None if they cannot be read."""
        path = resource_path(f"projects/{project}/regions/{region}")
        try:
            document = self._rest.get_or_none(self._base + path)
        except CloudError as error:
            _raise_unless_unavailable(error)
            return None
        return None if document is None else tuple(document.get("quotas", ()))


def vm_name(name: str) -> str:
    """Return the resource name of the virtual machine of a Workbench instance."""
    _, project, _, zone, _, instance = name.split("/")
    return f"projects/{project}/zones/{zone}/instances/{instance}"


def _raise_unless_unavailable(error: CloudError, *more_kinds: str) -> None:
    if error.failure.kind not in (*_UNAVAILABLE_KINDS, *more_kinds):
        raise error
