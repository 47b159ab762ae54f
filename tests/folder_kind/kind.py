"""The kind `folder`: a machine that is a folder, reached through a service on loopback."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from provision.facts import Facts
from provision.kinds.base import Kind, Refusal, TargetFacts, TargetFields, TargetModel

MAX_RANKS = 2


class FolderTarget(TargetModel):
    """A machine that is a folder."""

    kind: Literal["folder"]
    service: str = Field(pattern=r"^http://127\.0\.0\.1:\d+$")
    """Address of the service that makes the machine."""
    release: str = "1"
    """Release of the software that the machine brings."""
    ranks: int = Field(default=2, ge=1)
    """Processes that verify the machine; each sends its own report."""


class Folder(Kind):
    """Machines that are folders."""

    name = "folder"
    model = FolderTarget
    driver = "tests.folder_kind.driver:FolderDriver"
    rules = ("tests.folder_kind.rules",)
    lock_fields = ("release",)

    def refusals(
        self, target: TargetFacts, fields: TargetFields, facts: Facts
    ) -> Iterator[Refusal]:
        """Yield the fields without effect, and more ranks than a machine has."""
        own = target.target
        assert isinstance(own, FolderTarget)
        yield from super().refusals(target, fields, facts)
        for name in fields.secrets:
            yield Refusal(
                ("secrets", name), "a folder reads no secrets", "remove it", rule="SEC004"
            )
        if own.ranks > MAX_RANKS:
            yield Refusal(
                (*target.route, "ranks"),
                f"a folder has {MAX_RANKS} ranks, and {own.ranks} are requested",
                f"write ranks: {MAX_RANKS}",
                rule="FLD001",
            )
