"""Runs on a folder machine that are killed at any effect: nothing is lost, nothing is left."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from provision.adapters import RealSystem
from provision.commands.apply import ApplyOptions, apply
from provision.commands.destroy import destroy
from provision.commands.orphans import list_orphans
from provision.commands.shared.load import load_spec
from provision.commands.verify import verify
from provision.effects.system import Effect, ProgressCallback
from provision.errors import ProvisionError
from provision.kinds import registry_in_use
from provision.state_store import LocalStore
from tests.folder_kind import REGISTRY
from tests.folder_kind.adapter import CreateMachine, DeleteMachine, FetchReport, StartRun
from tests.folder_kind.conftest import Project


class Killed(BaseException):
    """As if the process were killed."""


class MortalSystem(RealSystem):
    """A system that is killed before or after an effect: the one with a number, or of a class."""

    def __init__(self, project: Project, at: int | type | None = None, *, after: bool = False):
        super().__init__(project.bench.environment())
        self.at, self.after, self.performed = at, after, 0

    def perform(self, effect: Effect, progress: ProgressCallback) -> None:
        self.performed += 1
        dies = self.at == self.performed or (isinstance(self.at, type) and type(effect) is self.at)
        if dies and not self.after:
            raise Killed
        super().perform(effect, progress)
        if dies:
            raise Killed


class Life:
    """The commands on a project, each with a system of its own."""

    def __init__(self, project: Project) -> None:
        self.project, self.path = project, project.bench.folder / "spec.yaml"
        self.lines: list[str] = []

    def apply(self, system: MortalSystem, *, detach: bool = False) -> int:
        loaded, options = load_spec(self.path, system), ApplyOptions(detach=detach)
        return apply(
            loaded, ("machine",), options, system, lambda *_: None, self.lines.append
        ).exit_code

    def verify(self, system: MortalSystem) -> None:
        verify(load_spec(self.path, system), ("machine",), system, self.lines.append)

    def destroy(self, system: MortalSystem) -> None:
        destroy(self.path, (), system, lambda _: None, self.lines.append)

    def check(self) -> None:
        """Check that state or journal know every machine."""
        system = MortalSystem(self.project)
        listing = list_orphans([load_spec(self.path, system)], system)
        assert listing.orphans == (), self.lines[-20:]

    def finish(self) -> None:
        """Apply and destroy, and check that one machine came of it and nothing is left."""
        assert self.apply(MortalSystem(self.project)) == 0
        self.check()
        assert len(self.project.service.names()) == 1
        ledger = LocalStore(self.project.bench.own, MortalSystem(self.project)).load_ledger()
        assert ledger.intents == ()
        self.destroy(MortalSystem(self.project))
        assert self.project.service.names() == []
        assert not self.project.bench.own.exists()


@pytest.fixture
def life(project: Project) -> Iterator[Life]:
    token = registry_in_use.set(REGISTRY)
    yield Life(project)
    registry_in_use.reset(token)


@pytest.mark.long(after=1)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("effect", [CreateMachine, FetchReport])
def test_an_apply_that_was_killed_is_continued(life: Life, effect: type, after: bool) -> None:
    with pytest.raises(Killed):
        life.apply(MortalSystem(life.project, effect, after=after))
    life.check()
    life.finish()
    assert life.project.service.changes.count("PUT spec.machine") == 1


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_verification_that_was_killed_is_continued(life: Life, after: bool) -> None:
    assert life.apply(MortalSystem(life.project)) == 0
    with pytest.raises(Killed):
        life.verify(MortalSystem(life.project, StartRun, after=after))
    life.check()
    life.finish()


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_destroy_that_was_killed_is_continued(life: Life, after: bool) -> None:
    assert life.apply(MortalSystem(life.project)) == 0
    with pytest.raises(Killed):
        life.destroy(MortalSystem(life.project, DeleteMachine, after=after))
    life.check()
    life.finish()


@pytest.mark.thorough
@pytest.mark.long(after=0)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("command", ["apply", "verify", "destroy"])
def test_a_kill_at_every_effect_loses_nothing(life: Life, command: str, after: bool) -> None:
    number, killed = 0, True
    while killed:
        number += 1
        if command != "apply":
            assert life.apply(MortalSystem(life.project)) == 0
        system = MortalSystem(life.project, number, after=after)
        killed = False
        try:
            getattr(life, command)(system)
        except Killed:
            killed = True
        life.check()
        life.finish()
    assert number > 3


@pytest.mark.thorough
@pytest.mark.long(after=1)
@pytest.mark.parametrize(("seed", "length"), [(1, 8), *((seed, 30) for seed in range(2, 12))])
def test_no_walk_loses_a_machine(life: Life, seed: int, length: int, tmp_path: Path) -> None:
    choices, steps = random.Random(seed), list[str]()
    for _ in range(length):
        step = choices.choice(["apply", "apply", "detach", "verify", "destroy", "release"])
        at = choices.choice([None, *range(1, 12)])
        system = MortalSystem(life.project, at, after=choices.random() < 0.5)
        life.project.service.lost_answers = choices.choice([0, 0, 0, 1])
        steps.append(f"{step} killed at {at}")
        with suppress(Killed, ProvisionError):
            match step:
                case "release":
                    life.project.write(release=f"'{choices.randint(1, 3)}'")
                case "detach":
                    life.apply(system, detach=True)
                case _:
                    getattr(life, step)(system)
        life.check()
    life.project.service.lost_answers = 0
    life.finish()
