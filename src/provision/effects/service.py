"""The base class of effects on services outside this machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class ServiceEffect:
    """A change at a service; performing it twice is safe.

    `service` is the key under which `provision.adapters.services` finds the adapter.
    """

    service: ClassVar[str]
