"""What can go wrong with a lock, from resolving to installing: each with its message, its exit code
and a way out that works.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.adapters.serving import CERTIFICATE, answering, certified
from tests.pytorch_rig import PyTorch
from tests.rig import MINOR, Bench, make_index, make_wheel, served, small_spec
from tests.support import require

NOWHERE = {"PROVISION_INDEX_PYPI": "http://127.0.0.1:9/simple"}


def refused(
    bench: Bench,
    code: int,
    *words: str,
    line: tuple[str, ...] = ("lock", "spec.yaml"),
    **changes: str,
) -> str:
    """Run a line that must end with `code`, say all of `words` and leave the lock as it is; return
    what it said, as one line.
    """
    path = bench.folder / "spec.lock"
    before = path.read_bytes() if path.is_file() else None
    done = bench.run(*line, **changes)
    assert done.returncode == code, done.stdout + done.stderr
    said = " ".join(done.stderr.split())
    for word in ("error: ", *words):
        assert word in said, done.stderr
    assert "Traceback" not in said
    assert (path.read_bytes() if path.is_file() else None) == before
    return said


def locked(bench: Bench, *packages: str, **changes: str) -> Path:
    """Lock those packages and return the lock's path."""
    bench.spec(small_spec(*packages))
    done = bench.run("lock", "spec.yaml", **changes)
    assert done.returncode == 0, done.stderr
    return bench.folder / "spec.lock"


def wheels(tmp_path: Path, name: str, version: str, **how: object) -> None:
    make_index(tmp_path / "index", (make_wheel(tmp_path / "more", name, version, **how),))  # type: ignore[arg-type]


# Resolving


def test_a_package_that_does_not_exist_is_told_with_the_index_that_was_asked(bench: Bench) -> None:
    bench.spec(small_spec("alpha", "alpah"))
    said = refused(
        bench,
        1,
        "no set of versions",
        f"alpah is not on the default index ({bench.index})",
        "check the spelling",
        "spec.yaml:5:5 requires alpah",
    )
    assert "loosen" not in said


def test_a_package_that_only_another_one_asks_for(bench: Bench, tmp_path: Path) -> None:
    wheels(tmp_path, "needy", "1.0", requires=("nonesuch-thing",))
    bench.spec(small_spec("needy"))
    refused(
        bench,
        1,
        "needy depend on nonesuch-thing",
        "nonesuch-thing is not on",
        "spec.yaml:4:5 requires needy",
    )


def test_a_package_that_its_own_index_lacks(bench: Bench, tmp_path: Path) -> None:
    private = make_index(tmp_path / "private", (make_wheel(tmp_path / "own", "delta", "1.0"),))
    bench.spec(
        small_spec(
            "{name: alpha, index: private}",
            extra="indexes: {private: {url: https://packages.example.com/simple}}\n",
        )
    )
    refused(
        bench,
        1,
        "alpha is not on index private",
        "spec.yaml:4:",
        PROVISION_INDEX_PRIVATE=private,
    )


def test_a_conflict_names_the_file_that_asked(bench: Bench) -> None:
    bench.spec(small_spec("beta"), "base.yaml")
    bench.spec("extends: base.yaml\npackages: [gamma]\n")
    refused(
        bench,
        1,
        "incompatible",
        "relax one",
        "base.yaml:4:5 requires beta",
        "spec.yaml:2:12 requires gamma",
    )


@pytest.mark.long(after=1)
@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"headers": ("Requires-Python: >=3.99",)}, "requires Python >=3.99"),
        ({"tag": "cp39-cp39-manylinux_2_17_x86_64"}, "Python ABI tag: `cp39`"),
    ],
    ids=["metadata", "tag"],
)
def test_no_version_for_this_python(
    bench: Bench, tmp_path: Path, how: dict[str, object], said: str
) -> None:
    wheels(tmp_path, "elsewhere", "1.0", **how)
    bench.spec(small_spec("elsewhere"))
    told = refused(
        bench,
        1,
        said,
        f"some versions do not support Python {MINOR}",
        "spec.yaml:4:5 requires elsewhere",
        f"spec.yaml:2:9 requires Python {MINOR}",
    )
    assert "loosen" not in told


def test_no_torch_for_this_python(bench: Bench, pytorch: PyTorch) -> None:
    bench.spec('gpu: L4\ncuda: "13.0"\npython: "3.14"\npackages: [torch==2.13.*]\n')
    words = (
        "a wheel for Python 3.14 on every platform",
        "spec.yaml:4:12 requires torch==2.13.*",
        "spec.yaml:3:9 requires Python 3.14",
    )
    said = refused(bench, 1, *words, **pytorch.offline())
    assert "requires-python" not in said, "advice on the scratch project is of no use"
    assert "scratch" not in said


def test_no_wheel_for_this_platform(bench: Bench, tmp_path: Path) -> None:
    wheels(tmp_path, "maconly", "1.0", tag="py3-none-macosx_11_0_arm64")
    bench.spec(small_spec("maconly", extra="platforms: [linux-x86_64]\n"))
    refused(
        bench,
        1,
        f"some versions do not have a wheel for Python {MINOR} on every platform",
        "spec.yaml:4:5 requires maconly",
    )


def test_a_derivation_of_several_builds_speaks_of_the_spec(bench: Bench, pytorch: PyTorch) -> None:
    shutil.copy(Path(__file__).parents[2] / "specs/hf-trainer.yaml", bench.folder / "spec.yaml")
    text = (bench.folder / "spec.yaml").read_text()
    bench.spec(text.replace("- datasets", "- datasets>=99"))
    said = refused(
        bench,
        1,
        "datasets>=99",
        "only datasets<=5.2.0 is available",
        "spec.yaml:16:5 requires datasets>=99",
        **pytorch.offline(),
    )
    assert "scratch" not in said
    assert "active Python version" not in said


# The index


def test_without_network_a_lock_that_holds_is_kept_and_the_cache_will_do(
    bench: Bench, tmp_path: Path
) -> None:
    with served(tmp_path / "index") as address:
        path = locked(bench, "alpha", PROVISION_INDEX_PYPI=address)
    there = {"PROVISION_INDEX_PYPI": address}
    text = path.read_bytes()
    assert bench.run("lock", "spec.yaml", "--check", **there).returncode == 0
    assert bench.run("lock", "spec.yaml", **there).returncode == 0
    assert bench.run("lock", "spec.yaml", "--upgrade", "--offline", **there).returncode == 0
    assert path.read_bytes() == text
    bench.spec(small_spec("alpha", "beta"))
    refused(
        bench,
        2,
        "a package index could not be reached",
        address,
        "use --offline to install from uv's cache",
        **there,
    )
    refused(
        bench,
        2,
        "not in uv's cache",
        "run the command once with network access",
        line=("lock", "spec.yaml", "--offline"),
        **there,
    )


def test_a_wheel_that_the_cache_lacks_is_named(bench: Bench, tmp_path: Path) -> None:
    """uv's cache has the page and the metadata, as after `lock`, but not the wheel."""
    with served(tmp_path / "index") as address:
        bench.spec(small_spec("alpha"))
        there = {"PROVISION_INDEX_PYPI": address}
        assert bench.run("lock", "spec.yaml", **there).returncode == 0
        refused(
            bench,
            2,
            "not in uv's cache",
            "alpha-2.0-py3-none-any.whl",
            "run the command once with network access, without --offline",
            line=("apply", "spec.yaml", "--yes", "--offline"),
            **there,
        )


def test_without_network_and_cache(bench: Bench) -> None:
    locked(bench, "alpha")
    shutil.rmtree(bench.folder / "uv-cache")
    refused(
        bench,
        2,
        "a package index could not be reached",
        "127.0.0.1:9",
        line=("lock", "spec.yaml", "--upgrade"),
        **NOWHERE,
    )
    refused(
        bench,
        2,
        "not in uv's cache",
        line=("lock", "spec.yaml", "--upgrade", "--offline"),
        **NOWHERE,
    )
    refused(
        bench,
        2,
        "a package index could not be reached",
        line=("apply", "spec.yaml", "--yes"),
        **NOWHERE,
    )


def test_a_certificate_that_nobody_signed(bench: Bench, tmp_path: Path) -> None:
    with certified(tmp_path / "index") as place:
        there = {"PROVISION_INDEX_PYPI": f"https://{place}", "SSL_CERT_FILE": ""}
        bench.spec(small_spec("alpha"))
        said = refused(
            bench,
            2,
            "the certificate of a package index is not trusted",
            place,
            "SSL_CERT_FILE",
            "`cert` in pip's configuration",
            **there,
        )
        assert "could not be reached" not in said
        assert (
            bench.run(
                "lock", "spec.yaml", "--upgrade", **{**there, "SSL_CERT_FILE": str(CERTIFICATE)}
            ).returncode
            == 0
        ), "the way out"
        assert (
            bench.run(
                "lock",
                "spec.yaml",
                "--upgrade",
                PROVISION_INDEX_PYPI=f"https://{place}",
                PIP_CERT=str(CERTIFICATE),
            ).returncode
            == 0
        ), "the other one"
        refused(
            bench,
            2,
            "the certificate of a package index is not trusted",
            line=("apply", "spec.yaml", "--yes"),
            **there,
        )


@pytest.mark.long(after=2)
@pytest.mark.parametrize(
    ("status", "kind", "body", "code", "said"),
    [
        (
            200,
            "text/plain",
            b"not an index",
            2,
            "a package index returned an unreadable response",
        ),
        (
            200,
            "text/html",
            b'<a href="alpha-1.0-py3-none-any.whl#sha256=00">alpha</a>',
            2,
            "a package index returned an unreadable response",
        ),
        (
            200,
            "text/html",
            b"<title>Sign in to this network</title>",
            1,
            "alpha is not on the default index (http://127.0.0.1",
        ),
        (500, "text/plain", b"", 2, "a package index could not be reached"),
        (403, "text/plain", b"", 2, "a package index requires credentials, or rejected them"),
        (404, "text/plain", b"", 1, "alpha is not on the default index (http://127.0.0.1"),
    ],
    ids=["plain text", "half a hash", "a page without files", "500", "403", "404"],
)
def test_what_an_index_may_answer(
    bench: Bench, status: int, kind: str, body: bytes, code: int, said: str
) -> None:
    bench.spec(small_spec("alpha"))
    with answering(status, kind, body) as place:
        refused(bench, code, said, PROVISION_INDEX_PYPI=f"http://{place}/simple")


# Installing


def _other_bytes(folder: Path) -> None:
    shutil.rmtree(folder / "alpha")
    make_index(
        folder,
        tuple(
            make_wheel(
                folder.parent / "other", "alpha", version, code="import os  # not what was locked\n"
            )
            for version in ("1.0", "2.0")
        ),
    )


def _other_bytes_under_the_old_hash(folder: Path) -> None:
    page = (folder / "alpha/index.html").read_text()
    _other_bytes(folder)
    (folder / "alpha/index.html").write_text(page)


def _cut_short(folder: Path) -> None:
    for wheel in (folder / "alpha").glob("*.whl"):
        wheel.write_bytes(wheel.read_bytes()[:200])


def _gone(folder: Path) -> None:
    shutil.rmtree(folder / "alpha")


@pytest.mark.long(after=1)
@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        (
            _other_bytes,
            1,
            (
                "a file on the index differs from the locked file",
                "Expected:",
                "if the change is intended",
            ),
        ),
        (
            _other_bytes_under_the_old_hash,
            1,
            (
                "a file on the index differs from the locked file",
                "Expected:",
                "if the change is intended",
            ),
        ),
        (_cut_short, 2, ("a downloaded wheel is damaged", "alpha", "run the command again")),
        (
            _gone,
            1,
            (
                "a locked version is not available from its index",
                "alpha==2.0",
                "provision lock --upgrade",
            ),
        ),
    ],
)
def test_what_cannot_be_installed_leaves_the_environment_before_it_in_use(
    bench: Bench, tmp_path: Path, change: Callable[[Path], None], code: int, words: tuple[str, ...]
) -> None:
    locked(bench, "alpha==1.0")
    assert bench.run("apply", "spec.yaml", "--yes").returncode == 0
    whole = (bench.own / "envs/spec.local").resolve()
    locked(bench, "alpha==2.0")
    shutil.rmtree(bench.folder / "uv-cache")
    shutil.copytree(tmp_path / "index", tmp_path / "kept")
    change(tmp_path / "index")
    said = refused(bench, code, *words, line=("apply", "spec.yaml", "--yes"))
    assert "scratch" not in said
    assert (bench.own / "envs/spec.local").resolve() == whole
    assert (whole / "provision.json").exists()
    assert "incomplete" in bench.run("status", "spec.yaml").stdout
    refused(
        bench,
        2,
        "is missing or incomplete",
        line=("run", "spec.yaml", "--", "python", "-c", "import alpha"),
    )
    shutil.rmtree(tmp_path / "index")
    shutil.copytree(tmp_path / "kept", tmp_path / "index")
    assert bench.run("apply", "spec.yaml", "--yes").returncode == 0
    told = bench.run(
        "run", "spec.yaml", "--", "python", "-c", "import alpha; print(alpha.__version__)"
    )
    assert told.stdout == "2.0\n"


def test_a_lock_changed_to_fit_a_tampered_wheel(bench: Bench, tmp_path: Path) -> None:
    path = locked(bench, "alpha")
    text = path.read_text()
    _other_bytes(tmp_path / "index")
    shutil.rmtree(bench.folder / "uv-cache")
    assert bench.run("lock", "spec.yaml", "--upgrade").returncode == 0
    (line,) = (line for line in path.read_text().splitlines() if '"name": "alpha"' in line)
    (old,) = (line for line in text.splitlines() if '"name": "alpha"' in line)
    assert line != old
    path.write_text(text.replace(old, line))
    refused(
        bench,
        1,
        "spec.lock was edited by hand",
        "repair the lock with `provision lock`",
        line=("apply", "spec.yaml", "--yes"),
    )
    assert not (bench.own / "envs").exists()


# The file


def test_a_lock_cut_short_anywhere_is_never_taken_for_a_whole_one(bench: Bench) -> None:
    path = locked(bench, "alpha", "gamma")
    whole = path.read_bytes()
    for part in range(1, 6):
        path.write_bytes(whole[: len(whole) * part // 6])
        refused(
            bench,
            1,
            "spec.lock",
            "repair the lock with `provision lock`",
            line=("lock", "spec.yaml", "--check"),
        )
    path.write_bytes(whole.rstrip()[:-1])
    refused(bench, 1, "spec.lock is damaged", line=("lock", "spec.yaml", "--check"))


@pytest.mark.long(after=4)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"python": "', '"python": "3'),
        ('"index": "pypi"', '"index": "private"'),
        ('"requires": ["alpha"]', '"requires": []'),
        ('.whl": "', '.whl": "0'),
        ('"indexes": {}', '"indexes": {"pypi": "https://packages.example.com/simple"}'),
        ('"because": "', '"because": "trust me: '),
        ('"packages": ["gamma"]', '"packages": ["gamma", "alpha"]'),
        ('"digest": "sha256:', '"digest": "sha256:0'),
    ],
)
def test_no_part_of_a_lock_can_be_changed_by_hand(bench: Bench, old: str, new: str) -> None:
    path = locked(bench, "gamma")
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    refused(
        bench,
        1,
        "spec.lock was edited by hand or truncated",
        "repair the lock with `provision lock`",
        line=("lock", "spec.yaml", "--check"),
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "spec.lock is damaged"),
        (b"\xff\xfe\x00", "spec.lock is damaged"),
        (b"[" * 100_000, "spec.lock is damaged"),
        (b'"provision.lock/2"', "is not a provision lock"),
    ],
    ids=["empty", "no text", "deep", "no mapping"],
)
def test_something_else_in_place_of_a_lock(bench: Bench, content: bytes, said: str) -> None:
    path = locked(bench, "alpha")
    path.write_bytes(content)
    refused(bench, 1, said, "provision lock --upgrade", line=("lock", "spec.yaml", "--check"))
    refused(bench, 1, said, "provision lock --upgrade")


@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_no_file_in_place_of_a_lock(bench: Bench, kind: str) -> None:
    path = bench.folder / "spec.lock"
    bench.spec(small_spec("alpha"))
    if kind == "folder":
        path.mkdir()
    else:
        os.mkfifo(path)
    for line in (
        ("lock", "spec.yaml", "--check"),
        ("lock", "spec.yaml"),
        ("plan", "spec.yaml"),
        ("apply", "spec.yaml", "--yes"),
    ):
        refused(
            bench,
            2,
            "cannot read",
            "spec.lock",
            "it is a folder" if kind == "folder" else "it is not a regular file",
            "rename or move what is at this path",
            line=line,
        )
    if kind == "folder":
        refused(
            bench,
            2,
            "cannot write",
            "spec.lock",
            "it is a folder",
            "move the folder out of the way",
            line=("lock", "spec.yaml", "--upgrade"),
        )
        path.rmdir()
    else:
        path.unlink()
    assert bench.run("lock", "spec.yaml").returncode == 0, "the way out"


def test_a_lock_that_may_not_be_read(bench: Bench) -> None:
    path = locked(bench, "alpha")
    mortal = [] if os.geteuid() else ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"]
    require(
        "root",
        not mortal or shutil.which("setpriv") is not None,
        "root reads every file: setpriv takes that right away",
    )
    path.chmod(0)
    for line in (
        ("lock", "spec.yaml", "--check"),
        ("lock", "spec.yaml"),
        ("apply", "spec.yaml", "--yes"),
    ):
        done = subprocess.run(
            [*mortal, *bench.argv(*line)],
            cwd=bench.folder,
            env=bench.environment(),
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.returncode == 2, done.stdout + done.stderr
        assert "cannot read spec.lock" in done.stderr.replace(f"{bench.folder}/", "")
        assert "permission denied" in done.stderr
        assert "check the owner and mode" in done.stderr
