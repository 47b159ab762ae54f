"""Several targets in one command: what stops one of them does not stop the others, and nothing half-made is left unknown."""

from __future__ import annotations

import json

import pytest

from provision.commands.apply import Wishes, apply
from provision.commands.destroy import destroy
from provision.commands.loading import load
from provision.effects import Effect, InstallPackages, RemoveTree, Tell
from provision.errors import ProvisionError, WorldError
from provision.world import Machine
from tests.rig import Bench, small_spec

BOTH = "targets:\n  one: {kind: local}\n  two: {kind: local}\n"


class Full(Machine):
    """A World whose disk is full for the first environment."""

    full = True

    def perform(self, effect: Effect, tell: Tell) -> None:
        if isinstance(effect, InstallPackages) and self.full:
            self.full = False
            raise WorldError("the disk is full", hint="make room")
        super().perform(effect, tell)


def test_a_local_target_that_fails_does_not_stop_the_other(bench: Bench) -> None:
    path = bench.spec(small_spec("alpha", extra=BOTH))
    world, lines = Full(bench.environment()), list[str]()
    applied = apply(load(path, world), ("one", "two"), Wishes(), world, lambda *_: None, lines.append)
    assert (applied.exit_code, list(applied.failed), [one.place.target for one in applied.results]) == (2, ["one"], ["two"])
    assert "target one failed: the disk is full" in lines
    assert not (bench.own / "journal.json").read_text(), "what was begun is settled"
    assert sorted(path.name for path in (bench.own / "envs").iterdir() if "one" in path.name) == []
    again = bench.run("apply", "spec.yaml", "--all", "--yes", "--output-format", "json")
    assert (again.returncode, [one["verdict"] for one in json.loads(again.stdout)["results"]]) == (0, ["verified", "verified"])


def test_verify_goes_on_after_a_target_that_is_not_there(bench: Bench) -> None:
    bench.spec(small_spec("alpha", extra=BOTH))
    assert bench.run("apply", "spec.yaml", "--target", "two", "--yes").returncode == 0
    done = bench.run("verify", "spec.yaml", "--all", "--output-format", "json")
    told = json.loads(done.stdout)
    assert (done.returncode, [one["target"] for one in told["failed"]], len(told["results"])) == (2, ["one"], 1)
    assert "target one:\nerror: there is no whole environment for spec/one" in done.stderr


class Stuck(Machine):
    """A World that cannot remove the first environment it is asked to."""

    stuck = True

    def perform(self, effect: Effect, tell: Tell) -> None:
        if isinstance(effect, RemoveTree) and "envs" in effect.path.parts and self.stuck:
            self.stuck = False
            raise WorldError("the folder is in use", hint="end what runs there")
        super().perform(effect, tell)


def test_destroy_goes_on_after_a_target_that_cannot_be_removed(bench: Bench) -> None:
    path = bench.spec(small_spec("alpha", extra=BOTH))
    assert bench.run("apply", "spec.yaml", "--all", "--yes").returncode == 0
    world, failed, lines = Stuck(bench.environment()), dict[str, ProvisionError](), list[str]()
    gone = destroy(path, (), world, lambda _: None, lines.append, everything=True, failed=failed)
    assert ({action.address for action in gone}, list(failed)) == ({"spec/two"}, ["one"])
    assert "target one failed: the folder is in use" in lines
    again = bench.run("destroy", "spec.yaml", "--yes", "--output-format", "json")
    assert (again.returncode, bench.own.exists(), json.loads(again.stdout)["failed"]) == (0, False, [])


def test_destroy_of_a_single_target_ends_with_its_error(bench: Bench) -> None:
    path = bench.spec(small_spec("alpha"))
    assert bench.run("apply", "spec.yaml", "--yes").returncode == 0
    with pytest.raises(WorldError, match="in use"):
        destroy(path, (), Stuck(bench.environment()), lambda _: None, lambda _: None, failed={})
