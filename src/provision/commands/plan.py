"""Show what apply would do, without doing any of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from provision.commands.apart import Errors, worst
from provision.commands.loading import Loaded
from provision.commands.lock import Locked, settle
from provision.commands.planning import Proposal, propose, refuse_unknown_kinds
from provision.effects import Tell, World
from provision.stores import LocalStore


@dataclass(frozen=True, slots=True)
class Planned:
    """A proposal and the lock that it rests on. `failed` are the errors that stopped one of several targets, by its name."""

    proposal: Proposal
    locked: Locked
    failed: Errors = field(default_factory=dict)

    @property
    def changes(self) -> bool:
        """Whether apply would change anything, the lock file included, or would wait for the report of a notebook."""
        return bool(self.proposal.plan.changes) or self.locked.fresh or self.proposal.awaiting

    @property
    def exit_code(self) -> int:
        """That of what stopped a target, 0 when nothing did."""
        return worst(self.failed)


def plan(loaded: Loaded, names: tuple[str, ...], world: World, tell: Tell, *, frozen: bool = False, adopt: bool = False) -> Planned:
    """Return the plan for some targets. A missing or stale lock is resolved in memory; nothing is written.

    Raises as apply does; what stops one target among several is in `failed`, beside the plan of the others.
    """
    if len(names) == 1:
        refuse_unknown_kinds(loaded, names)
    locked = settle(loaded, world, tell, frozen=frozen)
    ledger = LocalStore(loaded.folder, world).ledger()
    failed: Errors = dict(loaded.refused)
    left = tuple(name for name in names if name not in failed)
    return Planned(propose(loaded, locked.lock, left, ledger, world, adopt=adopt, failed=failed if len(names) > 1 else None), locked, failed)
