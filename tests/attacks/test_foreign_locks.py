"""A change of the lock alone is refused: digests have no key, so all else that a lock says is
compared with the spec, and with itself, without a network.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from provision.errors import LockError
from provision.lock import digest_of, dumps, loads
from tests.rig import MINOR, Bench, make_index, make_wheel, small_spec
from tests.support import make_once

SPEC = small_spec(
    "alpha",
    "gamma>=1",
    "{name: delta, index: private}",
    "zeta; sys_platform == 'win32'",
    extra="indexes: {private: {url: https://private.test/simple}}\n",
)
ZEROS = "0" * 64
Document = dict[str, Any]


def sealed(document: Document, *, environments: bool = True) -> str:
    """Return the text of a lock with new digests, as somebody who knows how they are made writes
    them.
    """
    for key, environment in dict(document["environments"]).items() if environments else ():
        rows = [row for row in document["packages"] if key in row.get("in", [key])]
        held = [
            [
                row["name"],
                row["version"],
                row["index"],
                [[name, value] for name, value in row["files"].items()],
            ]
            for row in sorted(rows, key=lambda row: (row["name"], row["version"]))
        ]
        parts = {
            "python": document["python"],
            "platform": environment["platform"],
            "flavour": environment["flavour"],
            "packages": held,
        }
        environment["digest"] = digest_of(parts)
    document["digest"] = digest_of(
        {key: value for key, value in document.items() if key != "digest"}
    )
    text = json.dumps(document, indent=1)
    try:
        return dumps(loads(text, "spec.lock"))
    except LockError:
        return text


def package(document: Document, name: str) -> Document:
    found: Document = next(row for row in document["packages"] if row["name"] == name)
    return found


def evil(name: str = "evil", index: str = "pypi", version: str = "1.0") -> Document:
    return {
        "name": name,
        "version": version,
        "index": index,
        "requires": [],
        "files": {f"{name}-{version}-py3-none-any.whl": ZEROS},
    }


def _add(**how: str) -> Callable[[Document], None]:
    return lambda document: document["packages"].append(evil(**how))


def _from_unknown_index(document: Document) -> None:
    document["indexes"]["evil"] = "https://evil.test/simple"
    document["packages"].append(evil(index="evil"))
    package(document, "alpha")["requires"] = ["evil"]


def _with(name: str, /, **parts: object) -> Callable[[Document], None]:
    return lambda document: package(document, name).update(parts)


def _file(name: str, value: str = ZEROS) -> Callable[[Document], None]:
    return lambda document: package(document, "alpha").update(files={name: value})


def _head(part: str, value: object) -> Callable[[Document], None]:
    return lambda document: document.update({part: value})


def _environment(**parts: object) -> Callable[[Document], None]:
    return lambda document: next(iter(document["environments"].values())).update(parts)


def _remove(name: str) -> Callable[[Document], None]:
    return lambda document: document["packages"].remove(package(document, name))


def _address(value: str) -> Callable[[Document], None]:
    return lambda document: document["indexes"].update(private=value)


def _other_target(document: Document) -> None:
    document["targets"]["there"] = next(iter(document["targets"].values()))


def _no_target(document: Document) -> None:
    document["targets"], document["environments"] = {}, {}
    document["packages"] = []


def _other_platform(document: Document) -> None:
    _environment(platform="windows-x86_64")(document)
    document["environments"] = {"windows-x86_64": next(iter(document["environments"].values()))}
    document["targets"]["local"]["environments"] = ["windows-x86_64"]


def _unused_environment(document: Document) -> None:
    document["environments"]["macos-arm64"] = {
        "platform": "macos-arm64",
        "flavour": None,
        "glibc": None,
        "driver": None,
        "digest": "",
    }


class Damage(NamedTuple):
    """A change of a lock, and what the refusal has to say about it."""

    change: Callable[[Document], None]
    said: str


DAMAGES = {
    "a package that nobody asked for": Damage(
        _add(), "package evil 1.0: no package that the spec requires depends on it"
    ),
    "one from an index that the spec does not name": Damage(
        _from_unknown_index,
        "index evil: the lock has it at https://evil.test/simple, but the spec has no such index",
    ),
    "no packages": Damage(_head("packages", []), "alpha, which the spec requires, is missing"),
    "no targets": Damage(_no_target, "target `local`: the lock has no environment for this target"),
    "a target that the spec has not": Damage(
        _other_target, "target `there`: the spec has no such target"
    ),
    "an environment that no target uses": Damage(
        _unused_environment, "environment macos-arm64: no target uses it"
    ),
    "another platform": Damage(
        _other_platform, "target `local`: it has no environment for linux-x86_64"
    ),
    "an unknown platform": Damage(_environment(platform="plan9"), "unknown platform 'plan9'"),
    "another Python": Damage(
        _head("python", "3.99"), f"the lock is for Python 3.99, but the spec requires {MINOR}"
    ),
    "an option as Python": Damage(_head("python", "--foo"), "'--foo' is not a Python version"),
    "another address of an index": Damage(
        _address("https://evil.test/simple"),
        "its address is https://private.test/simple, but the lock has https://evil.test",
    ),
    "an http index": Damage(
        _address("http://private.test/simple"),
        "its address is https://private.test/simple, but the lock has http://private.test",
    ),
    "pypi as a named index": Damage(
        lambda d: d["indexes"].update(pypi="https://evil.test"),
        "but the spec has no such index",
    ),
    "an index of torch that nothing uses": Damage(
        lambda d: d["indexes"].update({"pytorch-cpu": "https://download.pytorch.org/whl/cpu"}),
        "no package in the lock comes from it",
    ),
    "an index that the lock lacks": Damage(
        _with("alpha", index="evil"), "the lock has no index 'evil'"
    ),
    "a public package in the place of a private one": Damage(
        _with("delta", index="pypi"), "it comes from index pypi, but the spec requires private"
    ),
    "a private package in the place of a public one": Damage(
        _with("alpha", index="private"), "it comes from index private, but the spec requires pypi"
    ),
    "two versions of one package": Damage(
        _add(name="alpha", version="3.0"), "has a different version of alpha"
    ),
    "a version that the spec excludes": Damage(
        lambda d: package(d, "gamma").update(
            version="0.9", files={"gamma-0.9-py3-none-any.whl": ZEROS}
        ),
        "the spec requires gamma>=1",
    ),
    "an option as a name": Damage(_add(name="--foo"), "'--foo' is not a canonical package name"),
    "a name that is not canonical": Damage(
        _with("alpha", name="Al_pha"), "'Al_pha' is not a canonical package name"
    ),
    "an option as a version": Damage(
        _with("alpha", version="1.0 --pre"), "'1.0 --pre' is not a version"
    ),
    "a requirement that is an option": Damage(
        _with("alpha", requires=["--foo"]), "requires '--foo'"
    ),
    "a hash that is not hexadecimal": Damage(
        _file("alpha-2.0-py3-none-any.whl", "g" * 64), "is not a sha256: 64 hexadecimal digits"
    ),
    "a hash that is too short": Damage(
        _file("alpha-2.0-py3-none-any.whl", "0" * 63), "is not a sha256: 64 hexadecimal digits"
    ),
    "no files": Damage(_with("alpha", files={}), "it has no wheel for Python"),
    "a file of another package": Damage(
        _file("evil-2.0-py3-none-any.whl"), "evil-2.0-py3-none-any.whl is a file for evil 2.0"
    ),
    "a file of another version": Damage(
        _file("alpha-1.0-py3-none-any.whl"), "is a file for alpha 1.0"
    ),
    "a wheel for another platform": Damage(
        _file("alpha-2.0-py3-none-win_amd64.whl"), "does not run on linux-x86_64"
    ),
    "a path as a file": Damage(
        _file("../alpha-2.0-py3-none-any.whl"), "is not the file name of a wheel"
    ),
    "would be built from source": Damage(
        _file("alpha-2.0.tar.gz"), "the spec does not allow that with `build`"
    ),
    "an environment that the lock lacks": Damage(
        lambda d: package(d, "alpha").update({"in": ["elsewhere"]}),
        "the lock has no environment elsewhere",
    ),
    "a package that is missing": Damage(
        _remove("delta"), "delta, which the spec requires, is missing"
    ),
    "an older C library than the wheels need": Damage(
        _environment(glibc="9.9"), "its wheels need glibc of any version, but the lock has 9.9"
    ),
    "a part that nothing reads": Damage(_head("note", "trust me"), "note: unknown key"),
    "a number as a version": Damage(
        _with("alpha", version=2), "packages[0].version: expected a string"
    ),
    "a list as an environment": Damage(
        _head("environments", []), "environments: expected an object"
    ),
}


@pytest.fixture
def honest(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """A project with a lock that `provision lock` made, and its private index."""
    private = make_index(
        bench.folder.parent / "private", (make_wheel(bench.folder.parent / "own", "delta", "1.0"),)
    )

    def make(folder: Path) -> None:
        bench.spec(SPEC)
        done = bench.run("lock", "spec.yaml", PROVISION_INDEX_PRIVATE=private)
        assert done.returncode == 0, done.stderr
        for name in ("spec.yaml", "spec.lock"):
            shutil.copy(bench.folder / name, folder / name)

    bench.extra = {"PROVISION_INDEX_PRIVATE": private}
    shutil.copytree(
        make_once(tmp_path_factory, "foreign-locks", make), bench.folder, dirs_exist_ok=True
    )
    return bench


def damaged(bench: Bench, change: Callable[[Document], None], *, environments: bool = True) -> None:
    path = bench.folder / "spec.lock"
    document = json.loads(path.read_text())
    change(document)
    path.write_text(sealed(document, environments=environments))


def test_an_honest_lock_holds_with_digests_made_anew(honest: Bench) -> None:
    before = json.loads((honest.folder / "spec.lock").read_text())
    damaged(honest, lambda _: None)
    assert json.loads((honest.folder / "spec.lock").read_text()) == before, (
        "the digests of these tests are those of provision"
    )
    done = honest.run("lock", "spec.yaml", "--check")
    assert (done.returncode, done.stdout) == (0, "spec.lock is up to date\n"), done.stderr
    assert honest.run("plan", "spec.yaml").returncode == 0


def test_each_damage_is_refused_with_its_place_and_the_fix(
    honest: Bench, subtests: pytest.Subtests
) -> None:
    path = honest.folder / "spec.lock"
    text = path.read_text()
    for name, damage in DAMAGES.items():
        with subtests.test(name):
            path.write_text(text)
            damaged(honest, damage.change)
            done = honest.run("lock", "spec.yaml", "--check")
            assert done.returncode == 1, done.stdout + done.stderr
            said = " ".join(done.stderr.split())
            assert damage.said in said
            assert "spec.lock" in said.partition("help:")[0]
            assert re.search(r"why: spec\.lock:\d+: ", said) or "is damaged" in said
            assert "`provision lock" in said.partition("help:")[2]
            assert "Traceback" not in said


def test_a_part_that_is_written_twice_is_refused(honest: Bench) -> None:
    path = honest.folder / "spec.lock"
    path.write_text(path.read_text().replace('"packages": [', '"packages": [],\n  "packages": ['))
    done = honest.run("lock", "spec.yaml", "--check")
    assert done.returncode == 1
    assert "duplicate key 'packages'" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("plan",),
        ("apply", "--yes"),
        ("apply", "--locked", "--yes"),
        ("export", "--format", "requirements"),
    ],
)
def test_what_obeys_a_lock_refuses_it_before_anything_is_made(
    honest: Bench, words: tuple[str, ...]
) -> None:
    damaged(honest, _from_unknown_index)
    command, *options = words
    done = honest.run(command, "spec.yaml", *options)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "but the spec has no such index" in done.stderr
    assert "restore the previous version of spec.lock" in done.stderr
    assert not (honest.own / "envs").exists()


def test_a_stale_lock_gives_no_versions_when_it_contradicts_itself(honest: Bench) -> None:
    damaged(honest, _with("alpha", version="1.0 --pre"))
    honest.spec(SPEC + "name: other\n" + "platforms: [linux-x86_64, macos-arm64]\n")
    done = honest.run("apply", "spec.yaml", "--yes")
    assert done.returncode == 1
    assert "is not a version" in done.stderr
    assert not (honest.own / "envs").exists()


def test_lock_makes_it_anew_with_the_versions_and_without_what_was_added(honest: Bench) -> None:
    path = honest.folder / "spec.lock"
    whole = path.read_text()
    damaged(honest, _from_unknown_index)
    done = honest.run("lock", "spec.yaml")
    assert done.returncode == 0, done.stderr
    assert "3 versions are kept" in done.stdout
    assert "evil 1.0 is no longer needed" in done.stdout
    assert path.read_text() == whole
    assert honest.run("lock", "spec.yaml", "--check").returncode == 0


def _other_hash(document: Document) -> None:
    files = package(document, "alpha")["files"]
    files.update(dict.fromkeys(files, ZEROS))


@pytest.mark.parametrize(
    "words",
    [
        ("lock", "--check"),
        ("plan",),
        ("apply", "--locked", "--yes"),
        ("verify",),
        ("status",),
        ("run",),
    ],
)
def test_a_hash_under_the_digest_of_another_is_refused(
    applied: Bench, words: tuple[str, ...]
) -> None:
    damaged(applied, _other_hash, environments=False)
    command, *options = words
    done = applied.run(
        command, "spec.yaml", *options, *(("--", "true") if command == "run" else ())
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "its digest does not match its packages, their files and their hashes" in " ".join(
        done.stderr.split()
    )
    assert "verified" not in done.stdout.casefold()


def test_another_hash_is_another_environment_and_is_compared_with_the_file(applied: Bench) -> None:
    before = (applied.own / "envs/spec.local").resolve()
    damaged(applied, _other_hash)
    assert applied.run("lock", "spec.yaml", "--check").returncode == 0, (
        "no digest can tell: `lock --verify` asks the index"
    )
    planned = applied.run("plan", "spec.yaml")
    assert "the environment will change" in planned.stdout, planned.stdout
    done = applied.run("apply", "spec.yaml", "--locked", "--yes")
    assert done.returncode == 1
    assert "differs from the locked file" in done.stderr
    assert (applied.own / "envs/spec.local").resolve() == before
