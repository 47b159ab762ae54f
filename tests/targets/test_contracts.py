"""What every kind of target must keep: looking changes nothing, a second plan is empty, and no
field of the spec is ignored.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from provision.adapters.code_reader import LocalCodeReader
from provision.agent.core.code_files import CodeFile, CodeManifest
from provision.effects.code import CodeTree
from provision.effects.conda import CondaProgram, CondaRecord, CreateCondaPrefix
from provision.effects.google import GoogleEffect
from provision.effects.local import (
    CreateVenv,
    Damage,
    InstallPackages,
    MakeFolder,
    RemoveFileIfUnmodified,
    RemoveTree,
    ReplaceSymlink,
    WriteFile,
)
from provision.effects.machine import MachineResources
from provision.effects.packages import (
    NamedIndex,
    PackageSources,
    PythonInstallation,
    PythonSearchResult,
)
from provision.errors import ExternalError
from provision.lock import (
    Lock,
    LockedCondaPackage,
    LockedEnvironment,
    LockedFile,
    LockedPackage,
    TargetChoice,
)
from provision.lock.inputs import collect_lock_inputs
from provision.lock.model import environment_digest, with_digest
from provision.plan import Operation
from provision.spec import Spec
from provision.state import Ledger, create_empty_state
from provision.target_facts import find_unlockable
from provision.targets import TargetContext, load_driver
from provision.verification.device_files import expectations_of
from tests.folder_kind import REGISTRY
from tests.folder_kind.adapter import FolderEffect
from tests.folder_kind.adapter import perform as perform_on_folder
from tests.folder_kind.server import serve
from tests.targets.google import SPEC as WORKBENCH
from tests.targets.google import FakeCloud

FOLDER = Path("/project/.provision")
PLAIN: dict[str, Any] = {
    "gpu": "none",
    "python": "3.11",
    "packages": ["alpha", "ipykernel", "transformers"],
}


@dataclass
class Dictionary:
    """A World that is a dictionary: files by path; knows one Python and no Debian package."""

    files: dict[Path, str] = field(default_factory=dict)
    links: dict[Path, str] = field(default_factory=dict)
    python: str | None = "3.11.7"
    calls: list[str] = field(default_factory=list)
    damaged: Damage = field(default_factory=Damage)
    google: FakeCloud = field(default_factory=FakeCloud)

    def cloud(self) -> FakeCloud:
        return self.google

    def code(self) -> LocalCodeReader:
        return LocalCodeReader({}, offline=True)

    def environment(self) -> Mapping[str, str]:
        return {"HOME": "/home/someone", "PATH": "/usr/bin"}

    def read(self, path: Path, limit: int) -> bytes:
        found = self._at(path)
        if found is None:
            raise ExternalError(f"cannot read {path}")
        return found.encode()[:limit]

    def exists(self, path: Path) -> bool:
        real = self._real(path)
        return any(name == real or real in name.parents for name in self.files)

    def list_folder(self, path: Path) -> tuple[str, ...]:
        real = self._real(path)
        return tuple(
            sorted({name.relative_to(real).parts[0] for name in self.files if real in name.parents})
        )

    def find_running_programs(self, environment: Path) -> tuple[str, ...]:
        return ()

    def find_damage(
        self,
        environment: Path,
        minor: str,
        names: tuple[str, ...],
        *,
        hashed: bool = False,
        shared: bool = False,
    ) -> Damage:
        return self.damaged

    def is_writable(self, path: Path) -> bool:
        return True

    def find_pythons(self, minor: str) -> PythonSearchResult:
        own = PythonInstallation(self.python, Path("/usr/bin/python3.11")) if self.python else None
        return PythonSearchResult(minor, own, (own,) if own else (), is_downloadable=True)

    def find_package_sources(self, indexes: tuple[NamedIndex, ...], minor: str) -> PackageSources:
        raise AssertionError("planning asks no index")

    def conda_program(self) -> CondaProgram | None:
        return CondaProgram("py-rattler", None, "nothing else was found")

    def read_link(self, path: Path) -> str | None:
        return self.links.get(path)

    def platform(self) -> str:
        return "linux-x86_64"

    def machine_resources(self, folder: Path, *, with_gpus: bool) -> MachineResources:
        return MachineResources(2**40, 2**36, ("NVIDIA L4",) if with_gpus else None)

    def missing_system_packages(self, names: tuple[str, ...]) -> tuple[str, ...] | None:
        return names

    def perform(self, effect: object) -> None:
        match effect:
            case CreateVenv():
                self.files[effect.path / "bin/python"] = self.files[effect.path / "pyvenv.cfg"] = ""
            case CreateCondaPrefix():
                self.files[effect.path / "bin/python"] = self.files[
                    effect.path / "conda-meta/history"
                ] = ""
                for record in effect.records:
                    self.files[
                        effect.path
                        / f"conda-meta/{record.name}-{record.version}-{record.build}.json"
                    ] = ""
            case InstallPackages():
                packages = effect.environment / f"lib/python{effect.minor}/site-packages"
                for pin in effect.pins:
                    self.files[packages / f"{pin.name}-{pin.version}.dist-info/METADATA"] = ""
            case WriteFile():
                self.files[effect.path] = effect.content if isinstance(effect.content, str) else ""
            case ReplaceSymlink():
                self.links[effect.path] = effect.target
            case RemoveTree():
                self.files = {
                    name: text
                    for name, text in self.files.items()
                    if effect.path not in (name, *name.parents)
                }
                self.links.pop(effect.path, None)
            case RemoveFileIfUnmodified():
                if (
                    hashlib.sha256(self.files.get(effect.path, "").encode()).hexdigest()
                    == effect.sha256
                ):
                    del self.files[effect.path]
            case MakeFolder():
                pass
            case GoogleEffect():
                self.google.perform(effect)
            case FolderEffect():
                perform_on_folder(effect, None, print)  # type: ignore[arg-type]

    def _real(self, path: Path) -> Path:
        for link, target in self.links.items():
            if link in (path, *path.parents):
                return link.parent / target / path.relative_to(link)
        return path

    def _at(self, path: Path) -> str | None:
        return self.files.get(self._real(path))


DRIVERS = {
    kind.name: driver for kind in REGISTRY.kinds if (driver := load_driver(kind)) is not None
}
MINIMAL: dict[str, dict[str, Any]] = {
    "colab-enterprise": {"kind": "colab-enterprise", "project": "p", "region": "us-central1"},
    "colab": {"kind": "colab", "runtime": "2026.07"},
    "local": {"kind": "local"},
    "vertex-job": {
        "kind": "vertex-job",
        "project": "p",
        "regions": ["us-central1"],
        "bucket": "gs://bucket/p",
        "image": f"python@sha256:{64 * '0'}",
    },
    "workbench": WORKBENCH,
}


def place(kind: str = "local", version: str = "1.0", **fields: Any) -> TargetContext:
    document = {**PLAIN, "targets": {"local": MINIMAL.get(kind)}, **fields}
    spec = Spec.model_validate(document, context=REGISTRY)
    files = {
        package.key: LockedFile(f"{package.key}-{version}-py3-none-any.whl", "0" * 64)
        for package in spec.packages
    }
    held = tuple(
        LockedPackage(name, version, "pypi", ("linux-x86_64",), (), (file,))
        for name, file in files.items()
    )
    environment = LockedEnvironment(
        "linux-x86_64",
        "linux-x86_64",
        None,
        None,
        None,
        environment_digest("3.11", "linux-x86_64", None, held),
    )
    lock = with_digest(
        Lock(
            collect_lock_inputs(spec),
            "3.11",
            (environment,),
            {"local": TargetChoice(("linux-x86_64",), "torch is not among the packages")},
            {},
            held,
        )
    )
    content = b"print(1)"
    file = CodeFile("train.py", 0o100644, hashlib.sha256(content).hexdigest())
    tree = CodeTree(FOLDER.parent, CodeManifest((file,)), {file.path: content})
    return TargetContext(
        spec.for_target("local"),
        "local",
        "spec",
        FOLDER,
        lock,
        "linux-x86_64",
        code=tree if spec.code is not None else None,
    )


@pytest.fixture
def minimal(kind: str, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """The smallest target of a kind; that of the folder kind has its service."""
    if kind != "folder":
        yield MINIMAL[kind]
        return
    with serve(tmp_path / "machines") as service:
        yield {"kind": kind, "service": service.address}
        assert service.names() == []


@pytest.mark.parametrize("kind", sorted(DRIVERS))
def test_looking_and_planning_change_nothing(kind: str, minimal: dict[str, Any]) -> None:
    world = Dictionary()
    target, there = DRIVERS[kind], place(kind, targets={"local": minimal})
    target.plan(there, target.observe(there, Ledger(create_empty_state("l")), world))
    assert (world.files, world.links, world.google.done) == ({}, {}, [])


@pytest.mark.parametrize("kind", sorted(DRIVERS))
def test_a_second_plan_is_empty_and_destroy_leaves_nothing(
    kind: str, minimal: dict[str, Any]
) -> None:
    world, state = Dictionary(), create_empty_state("l")
    target, there = (
        DRIVERS[kind],
        place(
            kind,
            targets={"local": {**minimal, **({"kernel": True} if kind == "local" else {})}},
        ),
    )
    for action in target.plan(there, target.observe(there, Ledger(state), world)):
        assert action.operation is Operation.CREATE
        for effect in action.effects:
            world.perform(effect)
        state = state.after_action(action)
    again = target.plan(there, target.observe(there, Ledger(state), world))
    assert {action.operation for action in again} == {Operation.KEEP}
    for action in target.destroy(there.address, FOLDER, Ledger(state)):
        for effect in action.effects:
            world.perform(effect)
        state = state.after_action(action)
    assert (world.files, world.links, dict(state.resources)) == ({}, {}, {})
    assert (world.google.found, world.google.objects) == ({}, {})


def conda_place(*brought: str) -> TargetContext:
    """A place that conda makes: Python, and these packages."""
    there = place(
        "local",
        targets={"local": {"kind": "local", "manager": "conda", "kernel": True}},
        conda_packages=list(brought),
    )
    records = tuple(
        CondaRecord(
            name,
            "1.0",
            "h0_0",
            0,
            "",
            "conda-forge",
            "linux-64",
            f"{name}-1.0-h0_0.conda",
            "0" * 64,
            "",
            (),
            (),
        )
        for name in ("python", *brought)
    )
    digest = environment_digest("3.11", "linux-x86_64", None, there.lock.packages, records)
    environments = (replace(there.lock.environments[0], digest=digest),)
    return replace(
        there,
        lock=with_digest(
            replace(
                there.lock,
                environments=environments,
                conda=tuple(LockedCondaPackage(record, ("linux-x86_64",)) for record in records),
            )
        ),
    )


def test_conda_makes_it_once_puts_it_right_and_leaves_nothing() -> None:
    world, state, target = Dictionary(python=None), create_empty_state("l"), DRIVERS["local"]

    def apply(there: TargetContext) -> list[Operation]:
        nonlocal state
        done = []
        for action in target.plan(there, target.observe(there, Ledger(state), world)):
            for effect in action.effects:
                world.perform(effect)
            state = state.after_action(action)
            done.append(action.operation)
        return done

    there = conda_place("ffmpeg")
    assert (
        target.refusals(there, target.observe(there, Ledger(state), world)) == ()
    )  # no Python of this machine is needed
    assert apply(there) == [Operation.CREATE, Operation.CREATE]
    assert apply(there) == [Operation.KEEP, Operation.KEEP]
    world.files = {path: text for path, text in world.files.items() if "ffmpeg" not in path.name}
    assert apply(there) == [Operation.REPLACE, Operation.KEEP]
    assert apply(there) == [Operation.KEEP, Operation.KEEP]
    world.files[
        next(path for path in world.files if path.name == "history").parent / "extra-1-0.json"
    ] = ""
    assert (
        "conda package extra-1-0 was added"
        in target.plan(there, target.observe(there, Ledger(state), world))[0].reason
    )
    assert apply(conda_place("ffmpeg", "gxx"))[0] is Operation.REPLACE
    assert len({path.parts[4] for path in world.files if "envs" in path.parts}) == 1
    for action in target.destroy(there.address, FOLDER, Ledger(state)):
        for effect in action.effects:
            world.perform(effect)
        state = state.after_action(action)
    assert (world.files, world.links, dict(state.resources)) == ({}, {}, {})


ALTERED = Damage(
    (("alpha", ("a.py is missing", "b.py was changed", "c.py was changed", "d.py was changed")),),
    compared_by="size",
)
STARTED = Damage(startup_files=("evil.pth",))


@pytest.mark.parametrize(
    ("by_conda", "damage", "verb", "because"),
    [
        (
            False,
            ALTERED,
            Operation.CHANGE,
            "alpha: a.py is missing; b.py was changed; c.py was changed and 1 more",
        ),
        (True, ALTERED, Operation.REPLACE, "alpha: a.py is missing"),
        (
            False,
            STARTED,
            Operation.REPLACE,
            "evil.pth, which Python reads at startup, belongs to no package",
        ),
        (
            False,
            Damage(compared_by="sha256"),
            Operation.KEEP,
            "the packages match the lock, and the files match the installation (by sha256)",
        ),
    ],
)
def test_damage_of_files_is_an_action_with_its_reason(
    by_conda: bool, damage: Damage, verb: Operation, because: str
) -> None:
    world, state, target = Dictionary(), create_empty_state("l"), DRIVERS["local"]
    there = conda_place("ffmpeg") if by_conda else place()
    for action in target.plan(there, target.observe(there, Ledger(state), world)):
        for effect in action.effects:
            world.perform(effect)
        state = state.after_action(action)
    world.damaged = damage
    action = next(
        action
        for action in target.plan(there, target.observe(there, Ledger(state), world))
        if action.part == "environment"
    )
    assert action.operation is verb
    assert because in action.reason
    installs = [effect for effect in action.effects if isinstance(effect, InstallPackages)]
    assert [effect.reinstall for effect in installs] == {
        Operation.CHANGE: [("alpha",)],
        Operation.REPLACE: [()],
        Operation.KEEP: [],
    }[verb]


@pytest.mark.parametrize("kind", sorted(DRIVERS))
def test_every_action_says_why(kind: str, minimal: dict[str, Any]) -> None:
    target, there = DRIVERS[kind], place(kind, targets={"local": minimal})
    for world in (Dictionary(), Dictionary(python=None)):
        assert all(
            action.reason and action.title
            for action in target.plan(
                there, target.observe(there, Ledger(create_empty_state("l")), world)
            )
        )


def test_a_missing_python_is_an_action_of_its_own() -> None:
    target, there = DRIVERS["local"], place()
    first = target.plan(
        there, target.observe(there, Ledger(create_empty_state("l")), Dictionary(python=None))
    )[0]
    assert (first.part, first.title) == ("python", "python 3.11, by uv")


# A value for every field of the language that differs from its default.
OTHER: dict[str, Any] = {
    "apiVersion": None,
    "name": "other",
    "extends": None,
    "gpu": {"gpu": "L4", "cuda": "12.8"},
    "cuda": "12.8",
    "cuda_toolkit": "12.8",
    "python": "3.12",
    "packages": ["alpha==1.0", "ipykernel", "transformers"],
    "conda_packages": ["ffmpeg"],
    "indexes": {"private": {"url": "https://packages.example.com/simple"}},
    "exclude_newer": "2026-11-01",
    "platforms": ["linux-x86_64", "macos-arm64"],
    "system_packages": ["git"],
    "env": {"A": "b"},
    "secrets": {"TOKEN": {"env": "TOKEN"}},
    "paths": {"data": "/data"},
    "requires": {"ram": "1GiB"},
    "training": {"precision": "bf16"},
    "code": ".",
    "cost": None,
    "verify": {"timeout": "10m"},
    "targets": {"local": {"kind": "local", "kernel": True}},
}
TRAINING: dict[str, Any] = {
    "framework": "torch",
    "backend": "torch",
    "precision": "bf16",
    "model": {"parameters": "1B"},
    "method": "lora",
    "batch_size": 4,
    "sequence_length": 8,
    "optimizer": "sgd",
    "gradient_checkpointing": True,
    "torch_compile": True,
    "strategy": "ddp",
    "launcher": "torchrun",
    "dataloader_workers": 2,
    "arguments": {"warmup_steps": 3},
}


def training_change(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a spec's fields without and with a field of training. Only Keras has backends."""
    other = {"training": {"framework": "keras"}} if name == "backend" else {}
    return other, {"training": {**other.get("training", {}), name: TRAINING[name]}}


REQUIRES: dict[str, Any] = {
    "ram": "1GiB",
    "disk": "1GiB",
    "shm": "1GiB",
    "vram": "1GiB",
    "driver": ">=580",
    "compute_capability": ">=8.0",
}
PACKAGE: dict[str, Any] = {
    "version": ">=1",
    "extras": ["x"],
    "marker": "sys_platform == 'linux'",
    "index": "private",
    "build": True,
    "source": "conda",
    "path": "libs/alpha",
    "editable": True,
    "git": "https://git.example.com/alpha",
    "rev": "v1",
    "subdirectory": "alpha",
}
PACKAGE_WITH: dict[str, dict[str, Any]] = {
    "editable": {"path": "libs/alpha"},
    "rev": {"git": "https://git.example.com/alpha"},
    "subdirectory": {"git": "https://git.example.com/alpha"},
}
"""The fields that a field of a package needs."""
SETTINGS: dict[str, Any] = {
    "env": {"A": "b"},
    "secrets": {"TOKEN": {"env": "TOKEN"}},
    "training": {"precision": "bf16"},
}
LOCAL: dict[str, Any] = {
    **SETTINGS,
    "gpu": "L4",
    "cuda": "12.8",
    "paths": {"data": "/data"},
    "requires": {"ram": "1GiB"},
    "manager": "conda",
    "kernel": True,
}
# A local machine costs nothing, so a bound on cost holds; the version of the language and extends
# are gone once the spec is read.
WITHOUT_EFFECT = {"apiVersion", "extends", "cost"}


def effect_of(document: dict[str, Any]) -> str:
    """Everything that a local target makes of a spec: what is locked, promised, exported, planned,
    or refused.
    """
    there = place(**document)
    target = DRIVERS["local"]
    have = target.observe(there, Ledger(create_empty_state("l")), Dictionary())
    promised = there.expectations(Path("/env"))
    actions = [
        (action.part, action.title, repr(action.effects)) for action in target.plan(there, have)
    ]
    seen = [
        collect_lock_inputs(there.spec),
        promised,
        target.get_environment_variables(there, {}, partial=True),
        actions,
        target.refusals(there, have),
        find_unlockable(there.spec),
    ]
    return json.dumps(seen, default=repr, sort_keys=True)


@pytest.mark.parametrize("name", sorted(set(Spec.model_fields) - WITHOUT_EFFECT))
def test_no_field_of_the_spec_is_ignored(name: str) -> None:
    assert name in OTHER, "a new field needs a value here that differs from its default"
    change = OTHER[name] if name == "gpu" else {name: OTHER[name]}
    bound = (
        {"packages": [{"name": "alpha", "index": "private"}]} if name == "indexes" else {}
    )  # an index is for what is bound to it
    before = (
        {"indexes": {"private": {"url": "https://elsewhere.example.com/simple"}}}
        if name == "indexes"
        else {}
    )
    assert effect_of({**change, **bound}) != effect_of({**before, **bound})


@pytest.mark.parametrize("name", sorted(TRAINING))
def test_no_field_of_training_is_ignored(name: str) -> None:
    counted_only = {"data"}  # for MEM008 and `provision fit`
    fields = set(type(Spec.model_validate(PLAIN).training).model_fields)
    assert set(TRAINING) == fields - counted_only
    before, after = training_change(name)
    assert effect_of(after) != effect_of(before)


@pytest.mark.parametrize("name", sorted(REQUIRES))
def test_no_field_of_requires_is_ignored(name: str) -> None:
    assert set(REQUIRES) == set(type(Spec.model_validate(PLAIN).requires).model_fields)
    assert effect_of({"requires": {name: REQUIRES[name]}}) != effect_of({})


@pytest.mark.parametrize("name", sorted(PACKAGE))
def test_no_field_of_a_package_is_ignored(name: str) -> None:
    assert {*PACKAGE, "name"} == set(type(Spec.model_validate(PLAIN).packages[0]).model_fields)
    rest = ["ipykernel", "transformers"]
    plain = {"name": "alpha", **PACKAGE_WITH.get(name, {})}
    changed = effect_of({"packages": [{**plain, name: PACKAGE[name]}, *rest]})
    assert changed != effect_of({"packages": [plain, *rest]})


@pytest.mark.parametrize("name", sorted(LOCAL))
def test_no_field_of_a_local_target_is_ignored(name: str) -> None:
    assert {*LOCAL, "kind"} == set(type(Spec.model_validate(PLAIN).targets["local"]).model_fields)
    assert effect_of({"targets": {"local": {"kind": "local", name: LOCAL[name]}}}) != effect_of({})


# A value for every field of a Workbench target that differs from its default, and from what the
# plain one says.
ON_WORKBENCH: dict[str, Any] = {
    **SETTINGS,
    "gpu": "T4",
    "cuda": "12.6",
    "paths": {"data": "/data"},
    "requires": {"ram": "40GiB"},
    "project": "other-project",
    "zones": ["us-east1-b"],
    "machine_type": "g2-standard-8",
    "image": "workbench-instances-2603-20260901-1200-rc0",
    "gpu_driver": False,
    "reservation": "mine",
    "boot_disk": {"size": "300GiB"},
    "data_disk": {"type": "ssd"},
    "network": "net",
    "subnet": "sub",
    "public_ip": True,
    "mirrors": {"pypi": "https://mirror.example.com/simple"},
    "service_account": "a@my-project.iam.gserviceaccount.com",
    "access": {"mode": "single-user", "owner": "me@example.com"},
    "managed_euc": True,
    "shielded": {"vtpm": False},
    "labels": {"team": "a"},
    "tags": ["ssh"],
    "metadata": {"notebook-disable-root": "true"},
    "bucket": "gs://other/p",
    "idle_shutdown": "60m",
    "max_lifetime": "8h",
    "on_failure": "keep",
}
# What the author says of the network beyond Google's reach: the rules ask it, the service has no
# field for it.
ASKED_BY_RULES = {"nat"}


def effect_on_workbench(document: dict[str, Any], target: dict[str, Any]) -> str:
    """Everything that a Workbench target makes of a spec: what is locked, sent, recorded, or
    refused.
    """
    there = place(
        "workbench",
        **{"gpu": "L4", "cuda": "12.8", **document, "targets": {"local": {**WORKBENCH, **target}}},
    )
    kind, world = DRIVERS["workbench"], Dictionary()
    have = kind.observe(there, Ledger(create_empty_state("l")), world)
    actions = [
        (action.title, repr(action.effects), action.record) for action in kind.plan(there, have)
    ]
    seen = [
        collect_lock_inputs(there.spec),
        actions,
        kind.get_environment_variables(there, {}, partial=True),
        kind.refusals(there, have),
        find_unlockable(there.spec),
    ]
    return json.dumps(seen, default=repr, sort_keys=True)


@pytest.mark.parametrize("name", sorted(ON_WORKBENCH))
def test_no_field_of_a_workbench_target_is_ignored(name: str) -> None:
    assert {*ON_WORKBENCH, "kind", *ASKED_BY_RULES} == set(
        type(place("workbench").spec.targets["local"]).model_fields
    )
    assert effect_on_workbench({}, {name: ON_WORKBENCH[name]}) != effect_on_workbench({}, {})


@pytest.mark.parametrize("name", sorted(set(Spec.model_fields) - WITHOUT_EFFECT - {"targets"}))
def test_no_field_of_the_spec_is_ignored_on_workbench(name: str) -> None:
    change = {"gpu": {"gpu": "T4"}, "cuda": {"cuda": "12.6"}}.get(name, {name: OTHER[name]})
    bound = (
        {"packages": [{"name": "alpha", "index": "private"}]} if name == "indexes" else {}
    )  # an index is for what is bound to it
    before = (
        {"indexes": {"private": {"url": "https://elsewhere.example.com/simple"}}}
        if name == "indexes"
        else {}
    )
    assert effect_on_workbench({**change, **bound}, {}) != effect_on_workbench(
        {**before, **bound}, {}
    )


@pytest.mark.parametrize("name", sorted(TRAINING))
def test_no_field_of_training_is_ignored_on_workbench(name: str) -> None:
    before, after = training_change(name)
    assert effect_on_workbench(after, {}) != effect_on_workbench(before, {})


# A value for every field of a Colab target that differs from its default, and from what the plain
# one says.
ON_COLAB: dict[str, Any] = {
    **SETTINGS,
    "gpu": "L4",
    "cuda": "12.6",
    "paths": {"data": "/data"},
    "requires": {"ram": "40GiB"},
    "runtime": "2026.04",
    "via": "colab-cli",
    "isolation": "venv",
    "shape": "high",
    "bucket": "gs://my-bucket/p",
    "payload": "repository",
}


def effect_on_colab(document: dict[str, Any], target: dict[str, Any]) -> str:
    """Everything that a Colab target makes of a spec: what is locked, written, recorded, or
    refused.
    """
    there = place(
        "colab",
        **{
            "gpu": "T4",
            "cuda": "12.8",
            **document,
            "targets": {"local": {**MINIMAL["colab"], **target}},
        },
    )
    kind, world = DRIVERS["colab"], Dictionary()
    have = kind.observe(there, Ledger(create_empty_state("l")), world)
    actions = [
        (action.title, repr(action.effects), action.record) for action in kind.plan(there, have)
    ]
    seen = [
        collect_lock_inputs(there.spec),
        actions,
        kind.get_environment_variables(there, {}, partial=True),
        kind.refusals(there, have),
        find_unlockable(there.spec),
    ]
    return json.dumps(seen, default=repr, sort_keys=True)


@pytest.mark.long(after=2)
@pytest.mark.thorough
@pytest.mark.parametrize("name", sorted(ON_COLAB))
def test_no_field_of_a_colab_target_is_ignored(name: str) -> None:
    assert {*ON_COLAB, "kind"} == set(type(place("colab").spec.targets["local"]).model_fields)
    assert effect_on_colab({}, {name: ON_COLAB[name]}) != effect_on_colab({}, {})


@pytest.mark.long(after=2)
@pytest.mark.thorough
@pytest.mark.parametrize("name", sorted(set(Spec.model_fields) - WITHOUT_EFFECT - {"targets"}))
def test_no_field_of_the_spec_is_ignored_on_colab(name: str) -> None:
    change = {"gpu": {"gpu": "L4"}, "cuda": {"cuda": "12.6"}}.get(name, {name: OTHER[name]})
    bound = (
        {"packages": [{"name": "alpha", "index": "private"}]} if name == "indexes" else {}
    )  # an index is for what is bound to it
    before = (
        {"indexes": {"private": {"url": "https://elsewhere.example.com/simple"}}}
        if name == "indexes"
        else {}
    )
    assert effect_on_colab({**change, **bound}, {}) != effect_on_colab({**before, **bound}, {})


@pytest.mark.long(after=2)
@pytest.mark.thorough
@pytest.mark.parametrize("name", sorted(TRAINING))
def test_no_field_of_training_is_ignored_on_colab(name: str) -> None:
    before, after = training_change(name)
    assert effect_on_colab(after, {}) != effect_on_colab(before, {})


@pytest.mark.parametrize(
    ("target", "shared"),
    [
        ({"kind": "colab"}, True),
        ({"kind": "colab", "isolation": "venv"}, None),
        ({"kind": "local"}, None),
    ],
)
def test_only_an_environment_on_top_of_an_image_is_shared(
    target: dict[str, Any], shared: bool | None
) -> None:
    there, spec = place(), Spec.model_validate({**PLAIN, "targets": {"there": target}})
    assert (
        expectations_of(spec, "there", there.lock, there.environment, Path()).get("shared")
        is shared
    )
