"""Verdicts of another version's probe: they stay current, and plan and status name them.

`earlier_version` holds what version 0.1.0 wrote before a verdict recorded its probe: for a local
and a Colab target (in /srv/example/project, without environment and notebook), and for an instance
of the sandbox (without the programs that were uploaded).
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from provision.adapters import RealSystem
from provision.commands.plan import plan
from provision.commands.shared.load import LoadedSpec, load_spec
from provision.commands.shared.lock_file import read_lock
from provision.commands.shared.sandbox_spec import build_sandbox_spec
from provision.commands.shared.target_plans import get_driver_and_context
from provision.commands.status import status
from provision.plan import Operation, Verification
from provision.state import dumps, loads
from provision.state_store import LocalStore
from provision.verification.device_files import digest_of_expectations
from tests.applied_project import apply_once, bind
from tests.rig import Bench, small_spec

SAMPLES = Path(__file__).with_name("earlier_version")
ORIGIN = Path("/srv/example/project")
EARLIER = "0" * 64


class Elsewhere(RealSystem):
    """A reader that finds the files of `ORIGIN` in another folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__({})
        self._folder = folder

    def _moved(self, path: Path) -> Path:
        if not path.is_relative_to(ORIGIN / ".provision"):
            return path
        return self._folder / "provision" / path.relative_to(ORIGIN / ".provision")

    def exists(self, path: Path) -> bool:
        return super().exists(self._moved(path))

    def read(self, path: Path, *limits: int) -> bytes:
        return super().read(self._moved(path), *limits)


def planned(sample: Path, target: str, change: str = "") -> Verification:
    """What would be planned for a target of the kept project, at the place where it was made."""
    reader = Elsewhere(sample)
    spec = sample / "spec.yaml"
    spec.write_text(spec.read_text() + change)
    loaded: LoadedSpec = load_spec(spec, reader)
    lock = read_lock(loaded, reader)
    assert lock is not None
    loaded = loaded._replace(path=ORIGIN / "spec.yaml")
    state = loads((sample / "provision/state.json").read_text(), "state.json")
    driver, context = get_driver_and_context(loaded, lock, target, reader)
    return driver.plan_verification(context, state, reader)


@pytest.mark.parametrize("target", ["here", "colab"])
def test_a_verdict_of_the_version_before_is_recognised(tmp_path: Path, target: str) -> None:
    shutil.copytree(SAMPLES / "notebook", tmp_path / "sample")
    check = planned(tmp_path / "sample", target)
    assert (check.needed, check.earlier_probe) == (False, True)
    assert check.reason.startswith("verified (earlier probe) on 2026-11-23")


@pytest.mark.parametrize("target", ["here", "colab"])
def test_other_expectations_still_void_it(tmp_path: Path, target: str) -> None:
    shutil.copytree(SAMPLES / "notebook", tmp_path / "sample")
    check = planned(tmp_path / "sample", target, "env: {MODE: fast}\n")
    assert (check.needed, check.earlier_probe) == (True, False)


def test_it_needs_the_report_that_names_its_probe(tmp_path: Path) -> None:
    shutil.copytree(SAMPLES / "notebook", tmp_path / "sample")
    (tmp_path / "sample/provision/reports/spec.colab/report.json").write_text("{}")
    assert planned(tmp_path / "sample", "colab").needed


@contextmanager
def sandbox(bench: Bench) -> Iterator[RealSystem]:
    """The kept project with its instance, in a running sandbox."""
    pytest.importorskip("google.cloud.notebooks_v2")
    from provision.sandbox.serve import serve

    shutil.copytree(SAMPLES / "workbench/provision", bench.own)
    shutil.copy(SAMPLES / "workbench/spec.yaml", bench.folder)
    bind(bench.own / "sandbox/state")
    with serve(bench.own / "sandbox", ()) as running:
        environment = bench.environment(PROVISION_INDEX_PYPI="file:///srv/example/index")
        yield RealSystem(environment, endpoints=running.endpoints)


def test_an_instance_of_the_version_before_has_nothing_to_do(bench: Bench) -> None:
    with sandbox(bench) as system:
        loaded = build_sandbox_spec(load_spec(bench.folder / "spec.yaml", system), system)
        planned = plan(loaded, ("wb",), system, lambda _: None).target_plans.plan
        assert [action.operation for action in planned.actions] == [Operation.KEEP]
        check = planned.verifications["wb"]
        assert (check.needed, check.earlier_probe) == (False, True)
        found = status(loaded, LocalStore(Path(loaded.folder), system).load_ledger(), system)
        assert (found.exit_code, found.targets[0].earlier_probe) == (0, True)


@pytest.fixture
def applied(tmp_path_factory: pytest.TempPathFactory, bench: Bench) -> Bench:
    """A project that another version's probe verified."""
    apply_once(tmp_path_factory, bench, "earlier-probe", small_spec("alpha"))
    reports = bench.own / "reports/spec.local"
    expectations = json.loads((reports / "expectations.json").read_text())
    change_record(bench, probe=EARLIER, expectations=digest_of_expectations(expectations, EARLIER))
    return bench


def change_record(bench: Bench, **fields: str) -> None:
    """Change fields of the stored verdict; "" removes one."""
    path = bench.own / "state.json"
    state = loads(path.read_text(), "state.json")
    record = {**(state.resource("spec/local", "verification") or {}), **fields}
    kept = {key: value for key, value in record.items() if value != ""}
    path.write_text(dumps(state.with_record("spec/local", "verification", kept)))


def test_the_plan_is_empty_and_only_verify_renews_the_verdict(applied: Bench) -> None:
    shown = applied.run("plan", "spec.yaml", "--detailed-exitcode")
    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert "=    quick verification on this device: verified (earlier probe) on " in shown.stdout
    looked = applied.run("status", "spec.yaml")
    assert (looked.returncode, "verified (earlier probe) at " in looked.stdout) == (0, True)
    again = applied.run("apply", "spec.yaml", "--yes")
    assert (again.returncode, "verifying" in again.stderr) == (0, False)
    assert "(earlier probe)" in applied.run("status", "spec.yaml").stdout
    renewed = applied.run("verify", "spec.yaml")
    assert renewed.returncode == 0, renewed.stderr
    assert "(earlier probe)" not in applied.run("status", "spec.yaml").stdout
    assert "(earlier probe)" not in applied.run("plan", "spec.yaml").stdout


def test_apply_with_verify_renews_it_too(applied: Bench) -> None:
    assert applied.run("apply", "spec.yaml", "--yes", "--verify").returncode == 0
    assert "(earlier probe)" not in applied.run("status", "spec.yaml").stdout
