"""What a lock says of builds, runtimes and conda is compared with the spec: honest locks agree,
each change of one does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from provision import source
from provision.adapters import RealSystem
from provision.effects.conda import CondaRecord
from provision.facts import load_facts
from provision.lock import (
    Lock,
    LockedCondaPackage,
    LockedEnvironment,
    LockedPackage,
    dumps,
    loads,
    with_digest,
)
from provision.lock.inputs import list_changed_inputs, name_default_target
from provision.lock.model import environment_digest
from provision.lock.resolve import resolve_spec
from provision.lock.spec_agreement import find_disagreements
from provision.lock.wheels import with_platform_files
from provision.spec import Spec
from tests.conda_rig import CondaChannel
from tests.conftest import ROOT
from tests.rig import MINOR, Bench

GOLDEN = sorted(path.parent for path in (ROOT / "tests/golden").glob("lock-*/spec.lock"))
EMPTY = "0" * 64


def read(path: Path) -> tuple[Lock, Spec]:
    """Return a kept lock and its spec."""
    (document, *_) = source.read_spec_file(path, RealSystem())
    spec, _ = source.validate_source(document)
    assert spec is not None
    return loads(path.with_suffix(".lock").read_text(), "spec.lock"), spec


def resealed(lock: Lock) -> Lock:
    """Return the lock with all digests made anew."""

    def digest(environment: LockedEnvironment) -> str:
        held = tuple(
            with_platform_files(package, lock.python, environment.platform)
            for package in lock.packages_in(environment)
        )
        return environment_digest(
            lock.python,
            environment.platform,
            environment.flavour,
            held,
            lock.conda_records_in(environment),
        )

    return with_digest(
        replace(
            lock,
            environments=tuple(
                replace(environment, digest=digest(environment))
                for environment in lock.environments
            ),
        )
    )


def said(lock: Lock, spec: Spec) -> str:
    return "\n".join(
        f"{flaw.part}: {flaw.what}"
        for flaw in find_disagreements(resealed(lock), spec, load_facts())
    )


def with_package(lock: Lock, name: str, change: Callable[[LockedPackage], LockedPackage]) -> Lock:
    return replace(
        lock,
        packages=tuple(
            change(package) if package.name == name else package for package in lock.packages
        ),
    )


@pytest.mark.parametrize(
    "path",
    [*(folder / "spec.yaml" for folder in GOLDEN), ROOT / "specs/quickstart.yaml"],
    ids=lambda path: path.parent.name,
)
def test_locks_of_this_format_that_were_made_before_agree(path: Path) -> None:
    lock, spec = read(path)
    named = name_default_target(lock, spec)
    assert find_disagreements(named, spec, load_facts()) == ()
    assert list_changed_inputs(spec, named) == ()
    assert resealed(lock) == lock, (
        "digests of environments, and so their folders, are those of before"
    )


def _from_pypi(lock: Lock) -> Lock:
    return replace(
        with_package(lock, "torch", lambda package: replace(package, index="pypi")), indexes={}
    )


def _of_another_build(lock: Lock) -> Lock:
    swapped = {"linux-x86_64-cpu": "linux-x86_64-cu128", "linux-x86_64-cu128": "linux-x86_64-cpu"}
    return with_package(
        lock,
        "torch",
        lambda package: replace(
            package, environments=tuple(swapped[key] for key in package.environments)
        ),
    )


def _cuda_for_the_laptop(lock: Lock) -> Lock:
    return replace(
        lock,
        targets={
            **lock.targets,
            "laptop": replace(lock.targets["laptop"], environments=("linux-x86_64-cu128",)),
        },
    )


def _kept_is_shorter(lock: Lock) -> Lock:
    colab = lock.targets["colab"]
    return replace(lock, targets={**lock.targets, "colab": replace(colab, kept=colab.kept[1:])})


def _restarted_for_nothing(lock: Lock) -> Lock:
    return replace(
        lock, targets={**lock.targets, "colab": replace(lock.targets["colab"], restart=("torch",))}
    )


def _a_runtime_for_the_laptop(lock: Lock) -> Lock:
    names = tuple(lock.versions(lock.environments[0]))
    return replace(
        lock,
        targets={
            **lock.targets,
            "laptop": replace(lock.targets["laptop"], runtime="2026.07", kept=names),
        },
    )


def _numpy_from_pytorch(lock: Lock) -> Lock:
    return with_package(lock, "numpy", lambda package: replace(package, index="pytorch-cpu"))


def _another_address(lock: Lock) -> Lock:
    return replace(lock, indexes={**lock.indexes, "pytorch-cpu": "https://mirror.test/whl/cpu"})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            _from_pypi,
            ("torch 2.11.0+cpu: it comes from index pypi, but the spec requires pytorch-cpu",),
        ),
        (
            _of_another_build,
            (
                "torch 2.11.0+cpu: it is a build for cpu, but it is in linux-x86_64-cu128",
                "it comes from index pytorch-cpu",
            ),
        ),
        (
            _cuda_for_the_laptop,
            (
                (
                    "target `laptop`: the spec requires the torch build cpu, but "
                    "linux-x86_64-cu128 has cu128"
                ),
                "linux-x86_64-cpu: no target uses it",
            ),
        ),
        (
            _kept_is_shorter,
            ("target `colab`: its lists `kept`, `changed` and `added` do not contain each",),
        ),
        (
            _restarted_for_nothing,
            ("target `colab`: its list `restart` contains a package that is not changed",),
        ),
        (
            _a_runtime_for_the_laptop,
            ("target `laptop`: only a target of kind colab has a runtime",),
        ),
        (
            _numpy_from_pytorch,
            ("numpy 2.0.2: it comes from index pytorch-cpu, but the spec requires pypi",),
        ),
        (
            _another_address,
            ("index pytorch-cpu: its address is https://download.pytorch.org/whl/cpu",),
        ),
    ],
)
def test_builds_and_runtimes_are_those_of_the_targets(
    change: Callable[[Lock], Lock], words: Iterable[str]
) -> None:
    lock, spec = read(ROOT / "tests/golden/lock-joint/spec.yaml")
    found = said(change(lock), spec)
    for word in words:
        assert word in found


def test_a_mirror_that_the_spec_names_for_a_torch_build_is_its_address() -> None:
    lock, spec = read(ROOT / "tests/golden/lock-joint/spec.yaml")
    named = spec.model_validate(
        {**spec.model_dump(), "indexes": {"pytorch-cpu": {"url": "https://mirror.test/whl/cpu"}}}
    )
    assert said(_another_address(lock), named) == ""
    assert "its address is https://mirror.test/whl/cpu" in said(lock, named)


# conda

CONDA = {"kind": "local", "manager": "conda"}


@pytest.fixture(scope="module")
def by_conda(conda: CondaChannel, tmp_path_factory: pytest.TempPathFactory) -> tuple[Lock, Spec]:
    folder = tmp_path_factory.mktemp("conda")
    (folder / "home").mkdir()
    spec = Spec.model_validate(
        {
            "gpu": "none",
            "python": MINOR,
            "packages": [],
            "conda_packages": ["ffmpeg=6"],
            "targets": {"local": CONDA},
        }
    )
    return resolve_spec(
        spec,
        load_facts(),
        RealSystem(Bench(folder, "").environment(**conda.variables())),
        lambda _: None,
    ), spec


def with_record(lock: Lock, change: Callable[[CondaRecord], CondaRecord]) -> Lock:
    """Return the lock with another record of ffmpeg."""
    return replace(
        lock,
        conda=tuple(
            LockedCondaPackage(
                change(c.record) if c.record.name == "ffmpeg" else c.record, c.environments
            )
            for c in lock.conda
        ),
    )


def test_what_conda_brings_is_compared_too(
    by_conda: tuple[Lock, Spec], subtests: pytest.Subtests
) -> None:
    lock, spec = by_conda
    assert find_disagreements(lock, spec, load_facts()) == ()
    (keys,) = {package.environments for package in lock.conda}
    record = next(package.record for package in lock.conda if package.record.name == "ffmpeg")
    evil = record._replace(name="evil", file=f"evil-{record.version}-{record.build}.conda")
    cases = {
        "the spec does not list the channel 'evil'": with_record(
            lock, lambda r: r._replace(channel="evil")
        ),
        "is not a sha256: 64 hexadecimal digits": with_record(
            lock, lambda r: r._replace(sha256="zz")
        ),
        "is not a file for ffmpeg": with_record(lock, lambda r: r._replace(file="../ffmpeg.conda")),
        "files for 'win-64' do not run on linux-x86_64": with_record(
            lock, lambda r: r._replace(subdir="win-64")
        ),
        "not a valid name, version and build of a conda package": with_record(
            lock, lambda r: r._replace(build="a/b")
        ),
        "conda package evil": replace(lock, conda=(*lock.conda, LockedCondaPackage(evil, keys))),
        "it has the conda package ffmpeg more than once": replace(
            lock, conda=(*lock.conda, LockedCondaPackage(record._replace(sha256=EMPTY), keys))
        ),
        "ffmpeg, which conda should provide, is missing": replace(
            lock, conda=tuple(c for c in lock.conda if c.record.name != "ffmpeg")
        ),
        f"the spec requires Python {MINOR}": replace(
            lock,
            conda=tuple(
                replace(
                    c,
                    record=c.record._replace(
                        version="2.7", file=f"python-2.7-{c.record.build}.conda"
                    ),
                )
                if c.record.name == "python"
                else c
                for c in lock.conda
            ),
        ),
    }
    for words, changed in cases.items():
        with subtests.test(words):
            assert words in said(changed, spec)


def test_a_hash_of_conda_is_part_of_the_environment(by_conda: tuple[Lock, Spec]) -> None:
    lock, spec = by_conda
    changed = with_record(lock, lambda r: r._replace(sha256=EMPTY))
    assert "its digest does not match" in "\n".join(
        flaw.what for flaw in find_disagreements(with_digest(changed), spec, load_facts())
    )
    assert resealed(changed).environments[0].digest != lock.environments[0].digest
    assert loads(dumps(with_digest(changed)), "x").conda == changed.conda
