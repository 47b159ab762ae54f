"""The base class of effects on services outside this machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class ServiceEffect:
    """A change at a service; performing it twice is safe.

    `service` names the adapter that performs it (see `provision.adapters.system`).
    """

    service: ClassVar[str]
