"""The base class of effects on services outside this machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class ServiceEffect:
    """A change at a service; performing it twice is safe.

    Attributes:
        service: MODULE:FUNCTION of the adapter, called with effect, services and progress.
        is_billable: Something that costs money may appear from the request on, even if its answer
            is lost; the journal notes when it was requested.
    """

    service: ClassVar[str]
    is_billable: ClassVar[bool] = False
