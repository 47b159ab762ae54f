"""lock --check: what moved in the spec is named, and of everything else it says what it says of a
spec.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from provision import source
from provision.adapters import RealSystem
from provision.commands.lock_check import list_lock_differences
from provision.commands.shared.load import SpecHasErrors
from provision.errors import LockError, SourceError, UsageError
from provision.lock import (
    Lock,
    LockedEnvironment,
    LockedFile,
    LockedPackage,
    TargetChoice,
    compute_text_digest,
    dumps,
    loads,
    with_digest,
)
from provision.lock.inputs import collect_lock_inputs
from provision.lock.model import environment_digest
from tests.rig import Bench, small_spec

SPEC = """\
gpu: none
python: "3.12"
packages:
  - safetensors
  - numpy>=2
training: {framework: none}
targets:
  local: {kind: local}
"""
MACHINE = RealSystem()


def lock_for(path: Path) -> Path:
    """Write a lock for a spec, as if it had just been made of its text: the newest numpy and
    safetensors are 2.9.
    """
    (document,) = source.read_spec_file(path, MACHINE)
    spec, _ = source.validate_source(document)
    assert spec is not None
    keys = tuple(sorted(spec.platforms))
    packages = tuple(
        LockedPackage(
            name, "2.9", "pypi", keys, (), (LockedFile(f"{name}-2.9-py3-none-any.whl", "0" * 64),)
        )
        for name in ("numpy", "safetensors")
    )
    held = packages if spec.packages else ()
    environments = tuple(
        LockedEnvironment(
            key, key, None, None, None, environment_digest(spec.python, key, None, held)
        )
        for key in keys
    )
    targets = {name: TargetChoice(keys, "torch is not among the packages") for name in spec.targets}
    lock = with_digest(
        Lock(
            collect_lock_inputs(spec),
            spec.python,
            environments,
            targets,
            {},
            held,
            text_digest=compute_text_digest(document.data or {}),
        )
    )
    path.with_suffix(".lock").write_text(dumps(lock))
    return path.with_suffix(".lock")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC)
    lock_for(path)
    return path


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("gpu: none", "# cards cost money\ngpu: none"),
        ("gpu: none\n", "gpu:   'none'\n"),
        ("training:", "paths: {out: /tmp/out}\ntraining:"),
        ("{kind: local}", "{kind: local, paths: {out: /tmp/out}}"),
        ("  - safetensors\n  - numpy>=2\n", "  - numpy>=2\n  - safetensors\n"),
        ("  - safetensors\n  - numpy>=2\n", "  [safetensors, numpy>=2]\n"),
        ("  local: {kind: local}", "  local: &a {kind: local}"),
    ],
)
def test_what_says_the_same_of_packages_holds_by_its_text(path: Path, old: str, new: str) -> None:
    assert old in SPEC
    path.write_text(SPEC.replace(old, new))
    assert list_lock_differences(path, MACHINE) == ()


def test_another_form_of_the_same_holds_by_the_spec(path: Path) -> None:
    path.write_text(SPEC.replace("safetensors", "{name: safetensors}"))
    assert list_lock_differences(path, MACHINE) == ()


def test_what_moved_is_named(path: Path) -> None:
    path.write_text(SPEC.replace("numpy>=2", "numpy>=2.1"))
    assert list_lock_differences(path, MACHINE) == (
        "packages: + numpy>=2.1",
        "packages: - numpy>=2",
    )


def test_a_lock_made_without_the_digest_is_asked_by_the_spec(path: Path) -> None:
    lock = path.with_suffix(".lock")
    lock.write_text(dumps(with_digest(replace(loads(lock.read_text(), "x"), text_digest=""))))
    assert list_lock_differences(path, MACHINE) == ()


def test_the_files_that_a_spec_extends_count(path: Path) -> None:
    (path.parent / "pyproject.toml").touch()
    base = path.with_name("base.yaml")
    base.write_text("packages: [numpy>=2]\nenv: {A: b}\n")
    path.write_text(SPEC.replace("  - numpy>=2\n", "") + "extends: base.yaml\n")
    lock_for(path)
    assert list_lock_differences(path, MACHINE) == ()
    base.write_text("packages: [numpy>=2]\nenv: {A: c}\n")
    assert list_lock_differences(path, MACHINE) == ()
    base.write_text("packages: [numpy>=2.1]\n")
    assert list_lock_differences(path, MACHINE) == (
        "packages: + numpy>=2.1",
        "packages: - numpy>=2",
    )
    base.unlink()
    with pytest.raises(SpecHasErrors):
        list_lock_differences(path, MACHINE)


def test_an_error_of_the_rules_is_for_lint_when_the_text_says_the_same_of_packages(
    path: Path,
) -> None:
    path.write_text(SPEC + "paths: {out: ../out}\n")
    assert list_lock_differences(path, MACHINE) == ()
    path.write_text(SPEC.replace("safetensors", "{name: safetensors}") + "paths: {out: ../out}\n")
    with pytest.raises(SpecHasErrors):
        list_lock_differences(path, MACHINE)


def test_a_spec_that_cannot_be_understood_is_not_compared(path: Path) -> None:
    path.write_text(SPEC + "verify: {tier: thorough}\n")
    with pytest.raises(SpecHasErrors):
        list_lock_differences(path, MACHINE)


@pytest.mark.parametrize(
    "added",
    [
        "gpu: none\n",
        "verify: [\n",
        "\x01\n",
        'python: 3.12\npython: "3.12"\n',
        "exclude_newer: soon\n",
        "cuda: ~\n",
    ],
)
def test_broken_text_and_broken_deciding_fields_are_findings(path: Path, added: str) -> None:
    path.write_text(SPEC + added)
    with pytest.raises(SpecHasErrors):
        list_lock_differences(path, MACHINE)


def test_a_file_of_several_specs_is_refused_as_ever(path: Path) -> None:
    path.write_text(f"{SPEC}---\n{SPEC}")
    with pytest.raises(UsageError, match="contains 2 specs"):
        list_lock_differences(path, MACHINE)


def test_names_that_no_spec_has_are_refused_as_ever(path: Path) -> None:
    named = path.with_suffix(".json")
    named.write_text(json.dumps({"gpu": "none", "python": "3.12", "packages": []}))
    lock_for(named)
    with pytest.raises(UsageError, match="not a valid name for a spec"):
        list_lock_differences(named, MACHINE)
    path.write_text(SPEC)
    lock_for(path)
    path.with_suffix(".yml").write_text(SPEC)
    with pytest.raises(UsageError, match="would share a lock"):
        list_lock_differences(path, MACHINE)


def test_a_missing_spec_and_a_missing_or_damaged_lock_are_said(path: Path) -> None:
    path.with_suffix(".lock").write_text("{}")
    with pytest.raises(LockError, match="not a provision lock"):
        list_lock_differences(path, MACHINE)
    path.with_suffix(".lock").unlink()
    with pytest.raises(LockError, match="there is no"):
        list_lock_differences(path, MACHINE)
    path.unlink()
    with pytest.raises(SourceError, match=r"spec\.yaml"):
        list_lock_differences(path, MACHINE)


def test_a_lock_that_was_changed_by_hand_does_not_hold_by_its_text(path: Path) -> None:
    lock = path.with_suffix(".lock")
    lock.write_text(lock.read_text().replace('"python": "3.12",\n', '"python": "3.13",\n'))
    with pytest.raises(LockError, match="edited by hand"):
        list_lock_differences(path, MACHINE)


def test_a_link_leads_to_the_lock_of_its_file(path: Path) -> None:
    link = path.parent / "links" / "other.yaml"
    link.parent.mkdir()
    link.symlink_to(path)
    assert list_lock_differences(link, MACHINE) == ()


def test_the_lock_that_is_made_carries_the_digest(bench: Bench) -> None:
    path = bench.spec(small_spec("alpha"))
    assert bench.run("lock", "spec.yaml").returncode == 0
    assert list_lock_differences(path, MACHINE) == ()
    checked = bench.run("lock", "--check", "spec.yaml", "--output-format", "json")
    assert json.loads(checked.stdout) == {
        "version": 1,
        "lock": "spec.lock",
        "holds": True,
        "moved": [],
    }
    path.write_text(small_spec("alpha", "beta"))
    checked = bench.run("lock", "--check", "spec.yaml")
    assert (checked.returncode, checked.stdout) == (
        1,
        "spec.lock is stale; changes since it was created:\n  packages: + beta\n",
    )
