"""The default target, and what earlier versions made under its earlier name, `here`."""

from __future__ import annotations

import json

from tests.rig import Bench, small_spec

DECLARED = "targets: {here: {kind: local}}\n"


def test_a_state_and_a_lock_with_the_earlier_name_are_current(bench: Bench) -> None:
    bench.spec(small_spec("alpha", extra=DECLARED))
    assert bench.run("apply", "spec.yaml", "--yes").returncode == 0
    before = (bench.own / "state.json").read_text()
    bench.spec(small_spec("alpha"))
    assert bench.run("lock", "spec.yaml", "--check").returncode == 0
    plan = bench.run("plan", "spec.yaml", "--detailed-exitcode")
    assert (plan.returncode, "No changes" in plan.stdout) == (0, True), plan.stdout + plan.stderr
    for name in ("here", "local"):
        again = bench.run("apply", "spec.yaml", "--yes", "--target", name)
        assert again.returncode == 0, again.stderr
        assert bench.run("report", "spec.yaml", "--target", name).returncode == 0
    assert (bench.own / "state.json").read_text() == before
    ran = bench.run("run", "spec.yaml", "--", "python", "-c", "import alpha")
    assert ran.returncode == 0, ran.stderr
    assert "spec.here" in bench.run("status", "spec.yaml").stdout
    assert bench.run("destroy", "spec.yaml", "--yes").returncode == 0
    assert not bench.own.exists()


def test_a_lock_with_the_earlier_name_serves_the_new_name(bench: Bench) -> None:
    bench.spec(small_spec("alpha", extra=DECLARED))
    assert bench.run("lock", "spec.yaml").returncode == 0
    written = (bench.folder / "spec.lock").read_text()
    bench.spec(small_spec("alpha"))
    assert bench.run("apply", "spec.yaml", "--yes").returncode == 0
    assert (bench.folder / "spec.lock").read_text() == written
    assert (bench.own / "envs/spec.local/bin/python").exists()
    state = json.loads((bench.own / "state.json").read_text())
    assert {key.partition("#")[0] for key in state["resources"]} == {"spec/local"}
    assert bench.run("destroy", "spec.yaml", "--target", "here", "--yes").returncode == 0


def test_a_declared_name_stays_a_name(bench: Bench) -> None:
    bench.spec(small_spec("alpha", extra=DECLARED))
    assert bench.run("lock", "spec.yaml").returncode == 0
    refused = bench.run("plan", "spec.yaml", "--target", "local")
    assert (refused.returncode, "no target `local`" in refused.stderr) == (2, True)
    bench.spec(small_spec("alpha", extra="targets: {local: {kind: local}}\n"))
    assert bench.run("lock", "spec.yaml", "--check").returncode == 1
