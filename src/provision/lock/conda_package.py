"""A locked conda package and its entry in a lock's document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from provision.effects.conda import CondaRecord


@dataclass(frozen=True, slots=True)
class LockedCondaPackage:
    """One locked file of a conda channel and the environments that have it."""

    record: CondaRecord
    environments: tuple[str, ...]

    def to_document(self) -> dict[str, Any]:
        """Return its entry in the lock."""
        document = {
            key: value
            for key, value in self.record._asdict().items()
            if value or key in ("name", "version", "build", "depends")
        }
        return {**document, "in": self.environments}

    @classmethod
    def from_document(cls, part: Mapping[str, Any]) -> LockedCondaPackage:
        """Return the package of an entry."""
        fields = {"number": 0, "noarch": "", "md5": "", "constrains": (), **part}
        environments = tuple(fields.pop("in"))
        for key in ("depends", "constrains"):
            fields[key] = tuple(fields[key])
        return cls(CondaRecord(**fields), environments)
