"""The registry of kinds: what is made of it, and what is loaded of a kind."""

from __future__ import annotations

import subprocess
import sys
from contextvars import copy_context
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest
from pydantic import ValidationError

from provision.cli import run_cli
from provision.kinds import REGISTRY, Registry
from provision.kinds.colab import Colab
from provision.kinds.local import Local
from provision.schema import json_schema
from provision.spec import Spec
from provision.targets import Driver, find_driver, load_driver, load_drivers
from tests.conftest import ROOT

PLAIN = {"gpu": "none", "python": "3.11", "packages": []}
LOCAL_ONLY = replace(REGISTRY, kinds=REGISTRY.kinds[:1])


class Undriven(Colab):
    """A kind that can only be checked and locked."""

    driver = ""


UNDRIVEN = Registry((Local(), Undriven()))


def test_names_models_and_rules_of_kinds_agree() -> None:
    names = [kind.name for kind in REGISTRY.kinds]
    assert len(names) == len(set(names))
    for kind in REGISTRY.kinds:
        assert kind.model.model_fields["kind"].annotation.__args__ == (kind.name,)  # type: ignore[union-attr]
        assert REGISTRY.find(kind.name) is kind
        assert all(import_module(area).__path__ for area in kind.rules)
    assert REGISTRY.find("nowhere") is REGISTRY.find(["local"]) is None


def test_each_kind_has_the_driver_that_its_declaration_names() -> None:
    drivers = tuple(load_drivers(REGISTRY))
    assert [type(driver).__name__ for driver in drivers] == [
        kind.driver.partition(":")[2] for kind in reversed(REGISTRY.kinds) if kind.driver
    ]
    assert all(isinstance(driver, Driver) for driver in drivers)
    assert drivers[-1] is load_driver(REGISTRY.kinds[0])


def test_a_kind_of_this_machine_has_a_driver_of_its_platform() -> None:
    for kind in REGISTRY.kinds:
        driver = load_driver(kind)
        if driver is not None:
            assert kind.is_this_machine == (driver.platform is None), kind.name


def test_a_spec_is_validated_by_the_registry_that_it_is_given() -> None:
    data = {**PLAIN, "targets": {"a": {"kind": "colab"}}}
    assert Spec.model_validate(data).registry is REGISTRY
    with pytest.raises(ValidationError) as caught:
        Spec.model_validate(data, context=LOCAL_ONLY)
    (error,) = caught.value.errors()
    assert (error["type"], error["loc"]) == ("union_tag_invalid", ("targets", "a"))
    assert error["ctx"]["expected_tags"] == "'local'"


def test_the_registry_stays_with_a_spec() -> None:
    spec = Spec.model_validate(PLAIN, context=LOCAL_ONLY)
    assert spec.for_target("local").registry is LOCAL_ONLY
    assert find_driver(spec, "local") is load_driver(REGISTRY.kinds[0])


def test_the_schema_has_the_kinds_of_the_registry() -> None:
    definitions = json_schema({}, LOCAL_ONLY)["definitions"]
    assert [name for name in definitions if name.endswith("Target")] == ["LocalTarget"]


def test_a_kind_without_a_driver_cannot_be_made() -> None:
    data = {**PLAIN, "targets": {"a": {"kind": "colab", "runtime": "2026.07"}}}
    spec = Spec.model_validate(data, context=UNDRIVEN)
    assert find_driver(spec, "a") is None


@pytest.mark.parametrize("command", [["plan"], ["apply", "--yes"], ["status"]])
def test_a_target_without_a_driver_is_refused_before_anything_is_resolved(
    tmp_path: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(
        "gpu: none\npython: '3.12'\npackages: []\ntargets: {t: {kind: colab, runtime: '2026.07'}}\n"
    )
    # In a context of its own: the registry stays set otherwise.
    code = copy_context().run(run_cli, [*command, str(path)], UNDRIVEN)
    shown = capsys.readouterr()
    if command == ["status"]:
        assert (code, "this version cannot create it" in shown.out) == (1, True)
        return
    assert code == 2
    assert "spec.yaml:4:21: this version of provision cannot create targets of kind" in shown.err
    assert "supported kinds: local" in shown.err
    assert not (tmp_path / "spec.lock").exists()


@pytest.mark.parametrize("command", [["lint"], ["lock", "--check"]])
def test_lint_and_lock_load_no_driver(tmp_path: Path, command: list[str]) -> None:
    program = (
        "import sys; from provision.cli import run_cli; run_cli(sys.argv[1:]); "
        "print([name for name in sys.modules if name.startswith('provision.targets')])"
    )
    for name in ("quickstart.yaml", "quickstart.lock"):
        (tmp_path / name).write_bytes((ROOT / "specs" / name).read_bytes())
    done = subprocess.run(
        [sys.executable, "-c", program, *command, "quickstart.yaml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_the_registry_in_use_is_read_only_where_no_spec_is_loaded_yet() -> None:
    package = ROOT / "src/provision"
    files = (path for path in package.rglob("*.py") if "registry_in_use" in path.read_text())
    assert {path.relative_to(package).as_posix() for path in files} == {
        "cli/completers.py",
        "cli/main.py",
        "commands/destroy.py",
        "commands/fleets/destroy.py",
        "commands/orphans.py",
        "commands/schema.py",
        "commands/shared/places.py",
        "commands/shared/report_import.py",
        "commands/shared/starter_targets.py",
        "imports/spec_check.py",
        "imports/spec_text.py",
        "kinds/__init__.py",
        "lock/inputs.py",
        "rules/registry.py",
        "source/loader.py",
    }
