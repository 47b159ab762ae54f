"""Show what apply would do, without doing any of it."""

from __future__ import annotations

from dataclasses import dataclass

from provision.commands.loading import Loaded
from provision.commands.lock import Locked, settle
from provision.commands.planning import Proposal, propose, refuse_unknown_kinds
from provision.effects import Tell, World
from provision.stores import LocalStore


@dataclass(frozen=True, slots=True)
class Planned:
    """A proposal and the lock that it rests on."""

    proposal: Proposal
    locked: Locked

    @property
    def changes(self) -> bool:
        """Whether apply would change anything, the lock file included, or would wait for the report of a notebook."""
        return bool(self.proposal.plan.changes) or self.locked.fresh or self.proposal.awaiting


def plan(loaded: Loaded, names: tuple[str, ...], world: World, tell: Tell, *, frozen: bool = False) -> Planned:
    """Return the plan for some targets. A missing or stale lock is resolved in memory; nothing is written. Raises as apply does."""
    refuse_unknown_kinds(loaded, names)
    locked = settle(loaded, world, tell, frozen=frozen)
    ledger = LocalStore(loaded.folder, world).ledger()
    return Planned(propose(loaded, locked.lock, names, ledger, world), locked)
