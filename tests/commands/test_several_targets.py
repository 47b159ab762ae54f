"""Several targets in one command: what stops one of them does not stop the others, and nothing
incomplete is left unknown.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from provision.adapters import RealSystem
from provision.commands.apply import ApplyOptions, apply
from provision.commands.destroy import destroy
from provision.commands.shared.load import load_spec
from provision.effects.local import InstallPackages, RemoveTree
from provision.effects.system import Effect, ProgressCallback
from provision.errors import ExternalError, ProvisionError
from provision.state import dumps, loads
from tests.rig import Bench, small_spec

BOTH = "targets:\n  one: {kind: local}\n  two: {kind: local}\n"


class Full(RealSystem):
    """A World whose disk is full for the first environment."""

    full = True

    def perform(self, effect: Effect, tell: ProgressCallback) -> None:
        if isinstance(effect, InstallPackages) and self.full:
            self.full = False
            raise ExternalError("the disk is full", hint="make room")
        super().perform(effect, tell)


def test_a_local_target_that_fails_does_not_stop_the_other(bench: Bench) -> None:
    path = bench.spec(small_spec("alpha", extra=BOTH))
    world, lines = Full(bench.environment()), list[str]()
    applied = apply(
        load_spec(path, world), ("one", "two"), ApplyOptions(), world, lambda *_: None, lines.append
    )
    assert (
        applied.exit_code,
        list(applied.failed),
        [one.context.target for one in applied.results],
    ) == (2, ["one"], ["two"])
    assert "target `one` failed: the disk is full" in lines
    assert not (bench.own / "journal.json").read_text(), "what was begun is settled"
    assert sorted(path.name for path in (bench.own / "envs").iterdir() if "one" in path.name) == []
    again = bench.run("apply", "spec.yaml", "--all", "--yes", "--output-format", "json")
    assert (again.returncode, [one["verdict"] for one in json.loads(again.stdout)["results"]]) == (
        0,
        ["verified", "verified"],
    )


@pytest.mark.long
def test_verify_goes_on_after_a_target_that_is_not_there(bench: Bench) -> None:
    bench.spec(small_spec("alpha", extra=BOTH))
    one_alone = bench.run("apply", "spec.yaml", "--target", "two", "--yes")
    assert (
        one_alone.returncode,
        "provision run spec.yaml --target two --" in one_alone.stdout,
    ) == (0, True), one_alone.stdout
    done = bench.run("verify", "spec.yaml", "--all", "--output-format", "json")
    told = json.loads(done.stdout)
    assert (done.returncode, [one["target"] for one in told["failed"]], len(told["results"])) == (
        2,
        ["one"],
        1,
    )
    assert "target one:\nerror: the environment for spec/one" in done.stderr


class Stuck(RealSystem):
    """A World that cannot remove the first environment it is asked to."""

    stuck = True

    def perform(self, effect: Effect, tell: ProgressCallback) -> None:
        if isinstance(effect, RemoveTree) and "envs" in effect.path.parts and self.stuck:
            self.stuck = False
            raise ExternalError("the folder is in use", hint="end what runs there")
        super().perform(effect, tell)


def test_destroy_goes_on_after_a_target_that_cannot_be_removed(bench: Bench) -> None:
    path = bench.spec(small_spec("alpha", extra=BOTH))
    assert bench.run("apply", "spec.yaml", "--all", "--yes").returncode == 0
    world, failed, lines = Stuck(bench.environment()), dict[str, ProvisionError](), list[str]()
    gone = destroy(path, (), world, lambda _: None, lines.append, everything=True, failed=failed)
    assert ({action.address for action in gone}, list(failed)) == ({"spec/two"}, ["one"])
    assert "target `one` failed: the folder is in use" in lines
    again = bench.run("destroy", "spec.yaml", "--yes", "--output-format", "json")
    assert (again.returncode, bench.own.exists(), json.loads(again.stdout)["failed"]) == (
        0,
        False,
        [],
    )


def test_destroy_of_a_single_target_ends_with_its_error(bench: Bench) -> None:
    path = bench.spec(small_spec("alpha"))
    assert bench.run("apply", "spec.yaml", "--yes").returncode == 0
    with pytest.raises(ExternalError, match="in use"):
        destroy(path, (), Stuck(bench.environment()), lambda _: None, lambda _: None, failed={})


WORKBENCH = (
    "kind: workbench, project: my-project, zones: [us-central1-a], bucket: "
    "gs://my-bucket/provision, image: workbench-instances-2603-20261004-2157-rc0"
)
NO_BUCKET = WORKBENCH.replace("bucket: gs://my-bucket/provision, ", "")
REFUSED = [
    ("kind: colab-enterprise, project: p, region: us-central1", 2, "nobody.json"),
    (WORKBENCH, 2, "nobody.json"),
    (NO_BUCKET, 1, "target `two` has errors in the spec"),
]
"""A target that cannot be planned, the exit code of its refusal, and what is said of it."""


@pytest.mark.long(after=1)
@pytest.mark.parametrize(("target", "code", "words"), REFUSED)
def test_plan_shows_the_others_where_one_target_is_refused(
    bench: Bench, target: str, code: int, words: str
) -> None:
    bench.spec(
        small_spec("alpha", extra=f"targets:\n  one: {{kind: local}}\n  two: {{{target}}}\n")
    )
    variables = {"GOOGLE_APPLICATION_CREDENTIALS": str(bench.folder / "nobody.json")}
    done = bench.run("plan", "spec.yaml", **variables)
    assert done.returncode == code, done.stderr
    assert "spec/one\n  +    environment spec.one-" in done.stdout
    assert "spec/two\n  not planned: " in done.stdout
    assert words in done.stderr.partition("\ntarget two:\n")[2]
    found = bench.run("plan", "spec.yaml", "--output-format", "json", **variables)
    document = json.loads(found.stdout)
    assert (found.returncode, list(document["verification"])) == (code, ["one"])
    assert [
        (one["target"], one["exit_code"], bool(one.get("diagnostics")))
        for one in document["failed"]
    ] == [("two", code, target == NO_BUCKET)]
    assert bench.run("plan", "spec.yaml", "--detailed-exitcode", **variables).returncode == 1
    saved = bench.run("plan", "spec.yaml", "--out", "plan.json", **variables)
    assert (saved.returncode in (1, 2), (bench.folder / "plan.json").exists()) == (True, False)
    alone = bench.run("plan", "spec.yaml", "--target", "two", **variables)
    assert (alone.returncode, "spec/one" in alone.stdout) == (code, False)


def _damage(path: Path, key: str) -> None:
    """Take the verdict out of a record, as no version writes it, with a checksum that fits."""
    state = loads(path.read_text(), str(path))
    del state.resources[key]["verdict"]
    path.write_text(dumps(state))


@pytest.mark.long
def test_a_damaged_record_of_one_target_does_not_hide_the_other(applied: Bench) -> None:
    applied.spec(
        small_spec("alpha", extra="targets:\n  local: {kind: local}\n  two: {kind: local}\n")
    )
    assert applied.run("apply", "spec.yaml", "--target", "two", "--yes").returncode == 0
    _damage(applied.own / "state.json", "spec/local#verification")
    shown = applied.run("status", "spec.yaml")
    assert shown.returncode == 2, shown.stdout
    assert "local        local, unknown: the state is damaged" in shown.stdout
    assert "two          local, current" in shown.stdout
    assert "target local:\nerror: the state is damaged" in shown.stderr
    document = json.loads(applied.run("status", "spec.yaml", "--output-format", "json").stdout)
    assert [one["target"] for one in document["failed"]] == ["local"]
    planned = applied.run("plan", "spec.yaml")
    assert (
        planned.returncode,
        "spec/local\n  not planned: the state is damaged" in planned.stdout,
        "spec/two\n  =" in planned.stdout,
    ) == (2, True, True)


def test_status_shows_every_target_where_the_spec_has_an_error_at_one(applied: Bench) -> None:
    applied.spec(
        small_spec("alpha", extra=f"targets:\n  local: {{kind: local}}\n  two: {{{NO_BUCKET}}}\n")
    )
    shown = applied.run("status", "spec.yaml")
    assert (
        shown.returncode,
        "local        local, current" in shown.stdout,
        "GCP021" in shown.stderr,
    ) == (1, True, True)
