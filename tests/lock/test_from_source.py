"""Packages with `build: true`: locked as source without running any of it, built against what is
locked as they are installed.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from provision.adapters import RealSystem
from provision.adapters.uv.download import download_file
from provision.effects.packages import IndexSource, SourceDistribution
from provision.errors import LockError, NetworkError
from provision.facts import load_facts
from provision.lock import Lock, dumps, loads
from provision.lock.inputs import list_changed_inputs
from provision.lock.resolve import resolve_spec
from provision.lock.spec_agreement import find_disagreements
from provision.spec import Spec
from remaking.index import PipIndex
from tests.adapters.serving import behind_password, proxying, redirecting
from tests.pytorch_rig import PyTorch
from tests.rig import (
    BACKEND,
    MINOR,
    TAG,
    Bench,
    make_index,
    make_source,
    make_wheel,
    served,
    small_spec,
)
from tests.support import require

KERN = {"name": "kern", "build": True}


def spec(*packages: object, **fields: object) -> Spec:
    """A spec with those packages in which nothing trains."""
    return Spec.model_validate(
        {
            "gpu": "none",
            "python": MINOR,
            "packages": list(packages),
            "training": {"framework": "none"},
            **fields,
        }
    )


def locked(
    bench: Bench, wanted: Spec, keep: Lock | None = None, offline: bool = False, **variables: str
) -> Lock:
    """Resolve with the real uv and the bench's index."""
    lock = resolve_spec(
        wanted,
        load_facts(),
        RealSystem(bench.environment(**variables), offline=offline),
        lambda _: None,
        keep=keep,
    )
    assert find_disagreements(lock, wanted, load_facts()) == ()
    return lock


def put(bench: Bench, *files: Path) -> None:
    """Put files on the bench's index, and the backend that the rig's sources are built by; a
    package's page lists these files only.
    """
    backend = make_wheel(bench.folder / "made", "rigbackend", "1.0", code=BACKEND)
    make_index(bench.folder.parent / "index", (backend, *files))


def sdist(bench: Bench, version: str = "1.0", **said: object) -> Path:
    """A source distribution of kern."""
    return make_source(bench.folder / "made", "kern", version, **said)  # type: ignore[arg-type]


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def marker(bench: Bench) -> Path:
    """The file that a build of kern writes to."""
    return bench.folder / "builds.txt"


def test_a_source_is_locked_by_its_hash_and_none_of_it_is_run(bench: Bench, marker: Path) -> None:
    made = sdist(bench, requires=("alpha<2",), marker=marker)
    put(bench, made)
    lock = locked(bench, spec(KERN))
    kern = next(package for package in lock.packages if package.name == "kern")
    assert [(file.name, file.sha256) for file in kern.files] == [(made.name, sha256(made))]
    assert (kern.version, kern.index, kern.built) == ("1.0", "pypi", True)
    assert kern.requires == ("alpha", "rigbackend")
    assert {package.name: package.version for package in lock.packages} == {
        "alpha": "1.0",
        "kern": "1.0",
        "rigbackend": "1.0",
    }
    assert lock.indexes == {}
    assert loads(dumps(lock), "x.lock") == lock
    assert not marker.exists()


def test_the_digest_of_an_environment_counts_the_source(bench: Bench) -> None:
    put(bench, sdist(bench))
    old = locked(bench, spec(KERN))
    (bench.folder.parent / "index/kern/kern-1.0.tar.gz").unlink()
    put(bench, sdist(bench, more={"changed": "yes"}))
    new = locked(bench, spec(KERN))
    assert old.environments[0].digest != new.environments[0].digest


def test_installing_builds_against_what_is_locked_and_again_for_other_packages(
    bench: Bench, marker: Path
) -> None:
    put(bench, sdist(bench, requires=("alpha",), marker=marker))
    for wanted, seen in (
        ("alpha==1.0", ["1.0"]),
        ("alpha==2.0", ["1.0", "2.0"]),
        ("alpha==1.0", ["1.0", "2.0"]),
    ):
        bench.spec(small_spec(wanted, "{name: kern, build: true}"))
        done = bench.run("apply", "spec.yaml", "--yes")
        assert done.returncode == 0, done.stdout + done.stderr
        assert marker.read_text().split() == seen
        told = bench.run(
            "run", "spec.yaml", "--", "python", "-c", "import kern; print(kern.BUILT_WITH)"
        )
        assert told.stdout.strip() == wanted.partition("==")[2], told.stderr


def test_a_source_that_is_not_the_locked_one_is_not_built(bench: Bench, marker: Path) -> None:
    put(bench, sdist(bench, marker=marker))
    bench.spec(small_spec("{name: kern, build: true}"))
    assert bench.run("lock", "spec.yaml").returncode == 0
    (bench.folder.parent / "index/kern/kern-1.0.tar.gz").unlink()
    put(bench, sdist(bench, marker=marker, more={"changed": "yes"}))
    done = bench.run("apply", "spec.yaml", "--yes")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "differs from the locked file" in done.stderr
    assert not marker.exists()
    assert bench.run("run", "spec.yaml", "--", "python", "-c", "").returncode != 0


def test_a_build_that_fails_is_said_and_the_environment_is_not_used(bench: Bench) -> None:
    put(
        bench,
        sdist(bench, more={"build.py": "print('Permission denied, timed out')\nimport nowhere"}),
    )
    bench.spec(small_spec("{name: kern, build: true}"))
    done = bench.run("apply", "spec.yaml", "--yes")
    assert done.returncode == 2
    assert "kern==1.0 could not be built from source" in done.stderr
    assert "No module named 'nowhere'" in done.stderr
    assert bench.run("run", "spec.yaml", "--", "python", "-c", "").returncode != 0


def test_of_the_newest_release_a_wheel_wins(bench: Bench) -> None:
    put(bench, sdist(bench), make_wheel(bench.folder / "made", "kern", "1.0"))
    kern = locked(bench, spec(KERN)).packages[0]
    assert [file.name for file in kern.files] == ["kern-1.0-py3-none-any.whl"]


def test_a_newer_source_wins_over_an_older_wheel_and_what_the_spec_admits_counts(
    bench: Bench,
) -> None:
    put(bench, sdist(bench, "2.0"), make_wheel(bench.folder / "made", "kern", "1.0"))
    assert [package.version for package in locked(bench, spec(KERN)).packages] == ["2.0", "1.0"]
    assert [
        package.version for package in locked(bench, spec({**KERN, "version": "<2"})).packages
    ] == ["1.0"]


def test_a_wheel_for_another_platform_is_none(bench: Bench) -> None:
    put(
        bench,
        sdist(bench),
        make_wheel(bench.folder / "made", "kern", "1.0", tag=f"{TAG}-{TAG}-macosx_11_0_arm64"),
    )
    kern = locked(bench, spec(KERN)).packages[0]
    assert [file.name for file in kern.files] == ["kern-1.0.tar.gz"]


def test_what_one_platform_has_no_wheel_for_is_built_on_all(bench: Bench) -> None:
    put(
        bench,
        sdist(bench),
        make_wheel(bench.folder / "made", "kern", "1.0", tag=f"{TAG}-{TAG}-manylinux_2_28_x86_64"),
    )
    both = locked(bench, spec(KERN, platforms=["linux-x86_64", "macos-arm64"]))
    assert [file.name for file in both.packages[0].files] == ["kern-1.0.tar.gz"]
    assert {environment.glibc for environment in both.environments} == {None}
    marked = {**KERN, "marker": "sys_platform == 'linux'"}
    one = locked(bench, spec(marked, "alpha", platforms=["linux-x86_64", "macos-arm64"]))
    assert [
        file.name for package in one.packages for file in package.files if package.name == "kern"
    ] == ["kern-1.0-" + f"{TAG}-{TAG}-manylinux_2_28_x86_64.whl"]


def test_an_index_without_hashes_is_taken_at_its_file(bench: Bench, marker: Path) -> None:
    made = sdist(bench, marker=marker)
    put(bench, made)
    page = bench.folder.parent / "index/kern/index.html"
    page.write_text(page.read_text().split("#")[0] + '">kern-1.0.tar.gz</a>')
    assert [file.sha256 for file in locked(bench, spec(KERN)).packages[0].files] == [sha256(made)]
    assert not marker.exists()


def test_an_index_with_hashes_of_another_kind_cannot_vouch_for_a_source(bench: Bench) -> None:
    made = sdist(bench)
    put(bench, made)
    page = bench.folder.parent / "index/kern/index.html"
    page.write_text(
        page.read_text().split("#")[0]
        + f'#sha512={hashlib.sha512(made.read_bytes()).hexdigest()}">kern-1.0.tar.gz</a>'
    )
    with pytest.raises(LockError) as caught:
        locked(bench, spec(KERN))
    assert caught.value.what == "the index has no sha256 hash for kern-1.0.tar.gz"


def test_where_another_package_asks_for_it_the_line_in_the_spec_counts(bench: Bench) -> None:
    put(bench, sdist(bench), make_wheel(bench.folder / "made", "user", "1.0", requires=("kern",)))
    assert {package.name: package.built for package in locked(bench, spec("user", KERN)).packages}[
        "kern"
    ]
    with pytest.raises(LockError) as caught:
        locked(bench, spec("user"))
    assert "{name: kern, build: true}" in caught.value.hint


def test_a_source_that_a_package_brings_is_built_if_its_line_names_it(
    bench: Bench, marker: Path
) -> None:
    put(
        bench,
        sdist(bench, marker=marker),
        make_wheel(bench.folder / "made", "user", "1.0", requires=("kern",)),
    )
    user = {"name": "user", "build": ["Kern"]}
    lock = locked(bench, spec(user))
    assert {package.name: package.built for package in lock.packages} == {
        "kern": True,
        "rigbackend": False,
        "user": False,
    }
    assert not marker.exists()
    assert list_changed_inputs(spec("user"), lock) == (
        "packages: + user",
        "packages: - user or the source of kern",
    )


def test_a_source_is_not_built_for_a_line_that_names_another(bench: Bench) -> None:
    put(bench, sdist(bench), make_wheel(bench.folder / "made", "user", "1.0", requires=("kern",)))
    lock = locked(bench, spec({"name": "user", "build": ["kern"]}))
    (disagreement,) = find_disagreements(lock, spec("user"), load_facts())
    assert "the spec does not allow that with `build`" in str(disagreement)


def test_a_name_in_build_that_nothing_requires_is_refused(bench: Bench) -> None:
    put(bench, sdist(bench), make_wheel(bench.folder / "made", "user", "1.0"))
    with pytest.raises(LockError) as caught:
        locked(bench, spec({"name": "user", "build": ["kern"]}))
    assert caught.value.what == ("`build` of user lists kern, but no locked package requires it")


def test_a_source_that_is_known_to_be_brought_is_built_with_build_true(bench: Bench) -> None:
    put(
        bench,
        make_source(bench.folder / "made", "antlr4-python3-runtime", "4.9.3"),
        make_wheel(bench.folder / "made", "antlr4-python3-runtime", "4.13.2"),
        make_wheel(
            bench.folder / "made",
            "hydra-core",
            "1.3.2",
            requires=("antlr4-python3-runtime==4.9.*",),
        ),
    )
    lock = locked(bench, spec({"name": "hydra-core", "version": "==1.3.2", "build": True}))
    (runtime,) = (package for package in lock.packages if package.name.startswith("antlr4"))
    assert (runtime.version, runtime.built) == ("4.9.3", True)


def test_a_source_without_leave_to_build_is_refused_with_the_way_out(
    bench: Bench, marker: Path
) -> None:
    put(bench, sdist(bench, marker=marker))
    bench.spec(small_spec("kern"))
    done = bench.run("lock", "spec.yaml")
    assert done.returncode == 1
    assert "or use `{name: kern, build: true}`" in " ".join(done.stderr.split())
    assert not marker.exists()


def test_leave_to_build_makes_a_lock_stale(bench: Bench) -> None:
    put(bench, sdist(bench))
    assert list_changed_inputs(spec("kern"), locked(bench, spec(KERN))) == (
        "packages: + kern",
        "packages: - kern or its source",
    )


def test_a_source_comes_from_the_index_that_its_package_is_bound_to(bench: Bench) -> None:
    put(bench)
    private = make_index(bench.folder.parent / "private", (sdist(bench),))
    lock = locked(
        bench,
        spec(
            {**KERN, "index": "private"},
            indexes={"private": {"url": "https://packages.example.com/simple"}},
        ),
        PROVISION_INDEX_PRIVATE=private,
    )
    assert {package.name: package.index for package in lock.packages} == {
        "kern": "private",
        "rigbackend": "pypi",
    }
    assert lock.indexes == {"private": "https://packages.example.com/simple"}


@pytest.mark.long
def test_a_changed_spec_keeps_the_source_that_still_fits(bench: Bench) -> None:
    put(bench, sdist(bench, "1.0"))
    old = locked(bench, spec(KERN))
    put(bench, sdist(bench, "1.0"), sdist(bench, "1.1"))
    kept = locked(bench, spec(KERN, "alpha"), keep=old)
    assert {package.name: package.version for package in kept.packages}["kern"] == "1.0"
    anew = locked(bench, spec(KERN, "alpha"))
    assert {package.name: package.version for package in anew.packages}["kern"] == "1.1"


def test_extras_and_what_older_setuptools_wrote_are_read(bench: Bench) -> None:
    egg = {
        "kern.egg-info/requires.txt": "alpha\n\n[more]\nbeta\n\n[more:sys_platform == "
        "'win32']\ngamma\n\n[other]\nnowhere\n"
    }
    put(bench, sdist(bench, more=egg))
    lock = locked(bench, spec({**KERN, "extras": ["more"]}))
    assert sorted(package.name for package in lock.packages) == [
        "alpha",
        "beta",
        "kern",
        "rigbackend",
    ]


def test_a_source_that_names_no_build_system_is_built_by_setuptools(bench: Bench) -> None:
    put(
        bench,
        sdist(bench, without=("pyproject.toml",)),
        make_wheel(bench.folder / "made", "setuptools", "80.0"),
    )
    assert {package.name for package in locked(bench, spec(KERN)).packages} == {
        "kern",
        "setuptools",
    }


def test_a_python_that_a_source_does_not_take_is_said(bench: Bench) -> None:
    put(bench, sdist(bench, headers=("Requires-Python: >=3.99",)))
    with pytest.raises(LockError) as caught:
        locked(bench, spec(KERN))
    assert "3.99" in caught.value.why
    assert "kern is built from its newest source release, 1.0" in caught.value.hint


@pytest.mark.long(after=2)
@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"without": ("PKG-INFO",)}, "it has no PKG-INFO"),
        (
            {"more": {"PKG-INFO": "Metadata-Version: 2.4\nName: other\nVersion: 1.0\n"}},
            "its PKG-INFO belongs to other",
        ),
        ({"requires": ("alpha ===== 1",)}, "alpha"),
        ({"build": "requires = [ ]]"}, "line"),
        ({"build": "requires = 5"}, "int"),
        ({"build": "requires = [5]"}, "string"),
        ({"headers": ("Requires-Python: none",)}, "none"),
    ],
)
def test_a_source_that_does_not_say_what_it_needs_is_refused(
    bench: Bench, said: dict[str, object], why: str
) -> None:
    put(bench, sdist(bench, **said))
    with pytest.raises(LockError) as caught:
        locked(bench, spec(KERN))
    assert caught.value.what == "kern-1.0.tar.gz cannot be locked as a source distribution"
    assert why in caught.value.why


@pytest.mark.parametrize("content", [b"", b"no archive", b"\x1f\x8b\x08\x00cut short"])
def test_what_is_no_archive_is_refused(bench: Bench, content: bytes) -> None:
    path = bench.folder / "made/kern-1.0.tar.gz"
    path.parent.mkdir()
    path.write_bytes(content)
    put(bench, path)
    with pytest.raises(LockError, match="cannot be locked as a source distribution"):
        locked(bench, spec(KERN))


def test_a_file_that_is_not_what_the_index_tells_of_is_refused(bench: Bench) -> None:
    put(bench, sdist(bench))
    (bench.folder.parent / "index/kern/kern-1.0.tar.gz").write_bytes(b"other")
    with pytest.raises(LockError, match="differs from the file that the index lists"):
        locked(bench, spec(KERN))


def test_offline_what_was_read_before_is_locked_and_else_it_is_said(bench: Bench) -> None:
    put(bench, sdist(bench))
    with served(bench.folder.parent / "index") as address:
        first = locked(bench, spec(KERN), PROVISION_INDEX_PYPI=address)
        again = locked(bench, spec(KERN), offline=True, PROVISION_INDEX_PYPI=address)
        assert dumps(again) == dumps(first)
        other = str(bench.folder / "other-cache")
        with pytest.raises(NetworkError) as caught:
            locked(
                bench, spec(KERN), offline=True, PROVISION_INDEX_PYPI=address, XDG_CACHE_HOME=other
            )
    assert "was never downloaded on this machine" in caught.value.why


def test_a_source_is_fetched_once(bench: Bench) -> None:
    put(bench, sdist(bench))
    asked: list[str] = []
    with served(bench.folder.parent / "index", asked.append) as address:
        for _ in range(2):
            locked(bench, spec(KERN), PROVISION_INDEX_PYPI=address)
    assert [path for path in asked if path.endswith(".tar.gz")] == ["/kern/kern-1.0.tar.gz"]


def test_torch_that_a_source_needs_is_held_to_the_flavour(bench: Bench, pytorch: PyTorch) -> None:
    wheels = bench.folder / "made"
    make_index(
        bench.folder.parent / "index",
        (
            make_source(wheels, "kern", "1.0", requires=("torch>=2",)),
            make_wheel(wheels, "rigbackend", "1.0"),
        ),
    )
    default = bench.folder.parent / "index"
    for folder in (pytorch.folder / "default").iterdir():
        if not (default / folder.name).exists():
            (default / folder.name).symlink_to(folder)
    targets = {
        "laptop": {"kind": "local"},
        "colab": {"kind": "colab", "runtime": "2026.07", "gpu": "T4"},
    }
    lock = locked(
        bench, spec("torch>=2.10", KERN, python="3.12", targets=targets), **pytorch.variables()
    )
    held = {environment.key: lock.versions(environment) for environment in lock.environments}
    assert {key: (versions["torch"], versions["kern"]) for key, versions in held.items()} == {
        "linux-x86_64-cpu": ("2.11.0+cpu", "1.0"),
        "linux-x86_64-cu128": ("2.11.0+cu128", "1.0"),
    }


def test_what_the_build_is_known_to_need_is_asked_of_the_lock(bench: Bench) -> None:
    put(bench, make_source(bench.folder / "made", "deepspeed", "0.19.8"))
    bench.spec(small_spec("{name: deepspeed, build: true}"))
    done = bench.run("lock", "spec.yaml")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "PKG026" in done.stdout + done.stderr
    assert "and its build needs torch and setuptools" in " ".join(done.stderr.split())
    assert not (bench.folder / "spec.lock").exists()


@pytest.fixture
def content(bench: Bench) -> Path:
    """A folder with a file `a.tar.gz`, to be served."""
    folder = bench.folder / "content"
    folder.mkdir()
    (folder / "a.tar.gz").write_bytes(b"a")
    return folder


@pytest.mark.long
@pytest.mark.network
@pytest.mark.parametrize(
    ("said", "version"), [({}, None), ({"exclude_newer": "2026-08-20"}, "0.19.5")]
)
def test_the_profile_with_deepspeed_is_locked_from_the_public_index(
    bench: Bench, pytorch: PyTorch, said: dict[str, str], version: str | None
) -> None:
    bench.spec(f"""
apiVersion: provision/v1
extends: builtin:deepspeed
gpu: L4:2
cuda: "12.6"
python: "3.12"
training: {{strategy: deepspeed-zero2, arguments: {{deepspeed: zero.json}}}}
{json.dumps(said).strip("{}")}
""")
    done = bench.run("lint", "spec.yaml")
    assert done.returncode == 0, done.stdout
    done = bench.run(
        "lock",
        "spec.yaml",
        timeout=600,
        **{**pytorch.variables(), "PROVISION_INDEX_PYPI": PipIndex().url},
    )
    require("index", "could not be reached" not in done.stderr, done.stderr.strip())
    assert done.returncode == 0, done.stdout + done.stderr
    lock = loads((bench.folder / "spec.lock").read_text(), "spec.lock")
    held = {package.name: package for package in lock.packages}
    assert [file.name for file in held["deepspeed"].files] == [
        f"deepspeed-{held['deepspeed'].version}.tar.gz"
    ]
    assert not held["deepspeed"].unconfirmed
    assert version in (None, held["deepspeed"].version)
    assert {"setuptools", "ninja", "torch", "py-cpuinfo"} <= set(held["deepspeed"].requires)
    assert held["torch"].version.endswith("+cu126")


def fetched(bench: Bench, file: SourceDistribution, index: IndexSource, **variables: str) -> bytes:
    path = bench.folder / "fetched"
    download_file(file, index, {"HOME": str(bench.folder / "home"), **variables}, path)
    return path.read_bytes()


def test_what_opens_the_index_opens_its_files_and_goes_nowhere_else(
    bench: Bench, content: Path
) -> None:
    with behind_password(content, "ann", "secret") as place, served(content) as other:
        file = SourceDistribution(
            "a.tar.gz", f"http://{place}/a.tar.gz", hashlib.sha256(b"a").hexdigest()
        )
        with pytest.raises(NetworkError) as caught:
            fetched(bench, file, IndexSource("pypi", other.replace("://", "://ann:secret@")))
        assert "401" in caught.value.why
        assert (
            fetched(bench, file, IndexSource("pypi", f"http://ann:secret@{place}/simple")) == b"a"
        )
        assert (
            fetched(
                bench,
                file,
                IndexSource("ours", f"http://{place}"),
                UV_INDEX_OURS_USERNAME="ann",
                UV_INDEX_OURS_PASSWORD="secret",
            )
            == b"a"
        )
        (bench.folder / "home/.netrc").write_text("machine 127.0.0.1 login ann password secret\n")
        assert fetched(bench, file, IndexSource("pypi", other)) == b"a"


def test_what_opens_an_index_is_not_passed_on_by_a_redirection(bench: Bench, content: Path) -> None:
    with (
        behind_password(content, "ann", "secret") as place,
        redirecting(f"http://{place}/a.tar.gz") as first,
    ):
        file = SourceDistribution(
            "a.tar.gz", f"http://{first}/a.tar.gz", hashlib.sha256(b"a").hexdigest()
        )
        with pytest.raises(NetworkError) as caught:
            fetched(bench, file, IndexSource("pypi", f"http://ann:secret@{first}/simple"))
    assert "401" in caught.value.why


def test_a_secret_in_an_address_is_not_shown(bench: Bench) -> None:
    file = SourceDistribution("a.tar.gz", "http://ann:secret@127.0.0.1:9/a.tar.gz", "0")
    with pytest.raises(NetworkError) as caught:
        fetched(bench, file, IndexSource("pypi", ""))
    assert "secret" not in caught.value.why


@pytest.mark.long(after=1)
@pytest.mark.parametrize(("no_proxy", "by_proxy"), [("", True), ("127.0.0.1", False)])
def test_the_proxy_of_uv_is_taken(
    bench: Bench, content: Path, no_proxy: str, by_proxy: bool
) -> None:
    asked: list[str] = []
    with served(content) as address, proxying(content, asked) as proxy:
        file = SourceDistribution(
            "a.tar.gz", f"{address}/a.tar.gz", hashlib.sha256(b"a").hexdigest()
        )
        assert (
            fetched(
                bench,
                file,
                IndexSource("pypi", ""),
                HTTP_PROXY=f"http://{proxy}",
                NO_PROXY=no_proxy,
            )
            == b"a"
        )
    assert asked == ([f"{address}/a.tar.gz"] if by_proxy else [])


def test_a_file_of_another_kind_of_address_is_refused(bench: Bench) -> None:
    with pytest.raises(LockError, match="could not be downloaded"):
        fetched(
            bench,
            SourceDistribution("a.tar.gz", "ftp://example.com/a.tar.gz", "0"),
            IndexSource("pypi", ""),
        )
