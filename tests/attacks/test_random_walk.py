"""A random walk over applies, moves, deletions and cuts at every kind of effect: whatever happens,
each instance is known to state or journal.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress

import pytest

from provision.adapters import RealSystem
from provision.commands.destroy import destroy
from provision.commands.orphans import list_orphans
from provision.effects.google import (
    CreateInstance,
    DeleteInstance,
    DeleteObjects,
    StartInstance,
    StopInstance,
    UpdateInstance,
    UploadObjects,
)
from provision.errors import ProvisionError
from tests.attacks.test_unknown_instances import Late, Refusing, settle_as_another_target
from tests.commands.test_workbench import CutShort, Device, Failing, Place, at
from tests.commands.test_workbench_owning import asked_long_ago
from tests.rig import Bench

pytest.importorskip("google.cloud.notebooks_v2")
ZONES = (
    "[us-central1-a, us-central1-b]",
    "[us-central1-b]",
    "[us-east1-c]",
    "[us-east1-c, us-central1-a]",
)
PROJECTS = ("my-project", "other-project")
CUT_AT = (
    UploadObjects,
    CreateInstance,
    DeleteInstance,
    DeleteObjects,
    StartInstance,
    StopInstance,
    UpdateInstance,
)


class Walk:
    """A project that a random walk goes over; `steps` says what was done, to be read where it
    fails.
    """

    def __init__(self, place: Place, seed: int) -> None:
        self.place, self.random, self.steps = place, random.Random(seed), list[str]()
        self.lost = set[str]()  # names of instances whose state was removed

    def step(self) -> None:
        """Do something, whatever becomes of it."""
        does = (
            [self.apply] * 10
            + [self.move] * 6
            + [self.destroy] * 4
            + [self.another_target, self.wait] * 2
            + [self.lose_state]
        )
        doing: Callable[[], None] = self.random.choice(does)
        self.steps.append(doing.__name__)
        with suppress(CutShort, ProvisionError):
            doing()

    def world(self) -> RealSystem:
        place = self.place
        kind = self.random.choice(["plain", "plain", "cut", "cut", "refusing", "late"])
        self.steps[-1] += f" ({kind})"
        if kind == "cut":
            effect, after = self.random.choice(CUT_AT), self.random.random() < 0.5
            self.steps[-1] += f" {'after' if after else 'before'} {effect.__name__}"
            return Failing(
                place.bench.environment(), endpoints=place.endpoints, at=effect, after=after
            )
        made = {"plain": RealSystem, "refusing": Refusing, "late": Late}[kind](
            place.bench.environment(), endpoints=place.endpoints
        )
        if isinstance(made, Late):  # what is recorded was shown before
            made.shown = frozenset(self.recorded())
        return made

    def apply(self) -> None:
        self.place.apply(self.world(), detach=True, adopt=self.random.random() < 0.3)

    def destroy(self) -> None:
        destroy(
            self.place.path, (), self.world(), lambda _: None, self.place.lines.append, sandbox=True
        )

    def move(self) -> None:
        text = self.place.path.read_text()
        for options in (ZONES, PROJECTS):
            old = next(
                one for one in sorted(options, key=len, reverse=True) if f": {one}\n" in text
            )
            text = text.replace(f": {old}\n", f": {self.random.choice(options)}\n")
        self.place.path.write_text(text)

    def another_target(self) -> None:
        settle_as_another_target(self.place)

    def lose_state(self) -> None:
        names = ["state.json"] if self.random.random() < 0.5 else ["state.json", "journal.json"]
        before = self.known()
        for name in names:
            (self.place.ledger_folder() / name).unlink(missing_ok=True)
        self.lost |= before - self.known()

    def check(self) -> None:
        """Each instance is known, or its state was removed: then `orphans` shows it if the spec
        names its project.
        """
        there, known = self.there(), self.known()
        listed = {
            orphan.name for orphan in list_orphans([self.place.loaded()], self.place.world).orphans
        }
        lost = {
            name
            for name in self.lost
            if f"project: {name.split('/')[1]}\n" in self.place.path.read_text()
        }
        told = "\n".join([*self.steps, "known:", *sorted(known), "lines:", *self.place.lines[-20:]])
        assert there <= known | self.lost, told
        assert there & lost - known <= listed, told

    def wait(self) -> None:
        if (self.place.ledger_folder() / "journal.json").exists() and self.place.ledger().intents:
            asked_long_ago(self.place)

    def there(self) -> set[str]:
        """Return the full names of all instances that exist."""
        cloud = self.place.world.cloud()
        return {str(one["name"]) for project in PROJECTS for one in cloud.instances(project)}

    def known(self) -> set[str]:
        """Return the full names that state and journal have."""
        return self.recorded() | {
            name for intent in self.place.ledger().intents for name in intent.names
        }

    def recorded(self) -> set[str]:
        """Return the full names that the state has."""
        names = set[str]()
        for record in self.place.ledger().state.resources.values():
            if record.get("instance"):
                zones = [record["zone"]] if record.get("zone") else record.get("zones", ())
                names |= {
                    f"projects/{record['project']}/locations/{zone}/instances/{record['instance']}"
                    for zone in zones
                }
        return names


@pytest.mark.thorough
@pytest.mark.long(after=1)
@pytest.mark.parametrize(
    ("seed", "length"), [(1, 14), (2, 14), *((seed, 100) for seed in range(3, 23))]
)
def test_no_instance_is_ever_unknown_and_destroy_ends_with_none(
    bench: Bench, seed: int, length: int
) -> None:
    with at(bench, Device()) as place:
        walk = Walk(place, seed)
        for _ in range(length):
            walk.step()
            walk.check()
        if place.ledger().intents:
            asked_long_ago(place)
        place.destroy()
        walk.check()
        assert walk.known() == set(), "\n".join([*walk.steps, "lines:", *place.lines[-20:]])
        assert walk.there() <= walk.lost
        print(f"seed {seed}, {length} steps")
