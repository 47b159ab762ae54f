"""The base class of effects on services outside this machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class ServiceEffect:
    """A change at a service; performing it twice is safe.

    Attributes:
        service: MODULE:FUNCTION of the adapter, called with effect, services and progress.
        creates: Once it was requested, something that costs money may appear.
    """

    service: ClassVar[str]
    creates: ClassVar[bool] = False
