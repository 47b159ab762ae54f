"""The lock of a sandbox and the one next to the spec: the same versions, and a line if not."""

from __future__ import annotations

from pathlib import Path

import pytest

from provision.adapters import RealSystem
from provision.commands.lock import LockResult, ensure_lock, write_lock
from provision.commands.shared.load import load_spec
from provision.commands.shared.sandbox_spec import build_sandbox_spec
from provision.errors import LockError
from tests.rig import MINOR, Bench, make_index, make_wheel

SPEC = f"""\
gpu: none
python: "{MINOR}"
packages: [lead]
targets:
  team: {{kind: colab-enterprise, project: my-project, region: us-central1}}
"""


class Project:
    """A spec with an index that has releases of `lead`."""

    def __init__(self, bench: Bench, folder: Path) -> None:
        self.bench, self.folder, self.path = bench, folder, bench.spec(SPEC)
        self.system, self.lines = RealSystem(bench.environment()), list[str]()

    def release(self, *versions: str) -> None:
        wheels = [make_wheel(self.folder / "wheels", "lead", version) for version in versions]
        make_index(self.folder / "index", tuple(wheels))

    def lock(self, *options: str) -> None:
        done = self.bench.run("lock", "spec.yaml", *options)
        assert done.returncode == 0, done.stderr

    def lock_sandbox(self, *, frozen: bool = False) -> LockResult:
        self.lines.clear()
        loaded = build_sandbox_spec(load_spec(self.path, self.system), self.system)
        locked = ensure_lock(loaded, self.system, self.lines.append, frozen=frozen)
        if locked.fresh:
            locked.path.parent.mkdir(parents=True, exist_ok=True)
            write_lock(locked, self.system, lambda _: None)
        return locked


@pytest.fixture
def project(bench: Bench, tmp_path: Path) -> Project:
    made = Project(bench, tmp_path)
    made.release("1.0")
    return made


def lead(locked: LockResult) -> str:
    (package,) = locked.lock.packages
    return package.version


def test_a_sandbox_installs_the_versions_of_the_lock_next_to_the_spec(project: Project) -> None:
    project.lock()
    project.release("1.0", "2.0")
    assert lead(project.lock_sandbox()) == "1.0"
    assert not project.lock_sandbox().fresh

    project.lock("--upgrade")
    with pytest.raises(LockError, match=r"spec\.lock has lead 2\.0, not 1\.0"):
        project.lock_sandbox(frozen=True)
    locked = project.lock_sandbox()
    assert (locked.fresh, lead(locked)) == (True, "2.0")
    assert f"locking: {project.path.with_suffix('.lock')} has lead 2.0, not 1.0" in project.lines
    assert not project.lock_sandbox().fresh


def test_a_version_that_a_sandbox_cannot_install_is_named(project: Project) -> None:
    project.release("1.0", "2.0")
    project.lock()
    project.release("1.0")
    for is_fresh in (True, False):
        locked = project.lock_sandbox()
        assert (locked.fresh, lead(locked)) == (is_fresh, "1.0")
        (note,) = [line for line in project.lines if line.startswith("SANDBOX: ")]
        assert note.endswith(
            "spec.lock has lead 2.0, not 1.0: the sandbox could not resolve these versions"
        )


def test_a_sandbox_without_a_current_lock_resolves_its_own(project: Project) -> None:
    project.lock()
    project.release("1.0", "2.0")
    project.path.write_text(SPEC.replace("[lead]", '["lead>=2"]'))
    assert lead(project.lock_sandbox()) == "2.0"
    assert not any("spec.lock has" in line for line in project.lines)
    project.path.with_suffix(".lock").unlink()
    assert lead(project.lock_sandbox()) == "2.0"


def test_a_damaged_lock_is_refused_in_a_sandbox_too(project: Project) -> None:
    project.lock()
    lock = project.path.with_suffix(".lock")
    text = lock.read_text()
    for damaged in ("{", text.replace('"version": "1.0"', '"version": "x y"')):
        assert damaged != text
        lock.write_text(damaged)
        with pytest.raises(LockError, match=r"spec\.lock"):
            project.lock_sandbox()
