"""provision facts fetch: newer facts from a file or an index that the project names, by hash."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from provision.facts import COMPILED_TABLES
from provision.facts.lazy_tables import LAZY_TABLES_FOLDER
from tests.rig import Bench, make_index, served, small_spec

COMPILED = COMPILED_TABLES.read_text(encoding="utf-8")
NEWER = COMPILED.replace('"release": "2.15.0"', '"release": "2.15.9"')
"""Facts in which torch 2.15.0 has another number."""


def archive(compiled: str = NEWER, folder: str = "", leave_out: str = "") -> bytes:
    """An archive of the installed tables with another compiled.json."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as made:
        if compiled:
            made.writestr(f"{folder}compiled.json", compiled)
        for path in LAZY_TABLES_FOLDER.glob("*.json"):
            if path.name != leave_out:
                made.write(path, f"{folder}on_demand/{path.name}")
    return data.getvalue()


def pin(bench: Bench, data: bytes, rest: str = 'file = "facts.zip"', sha256: str = "") -> str:
    """Write an archive and a configuration that pins it; return the hash."""
    (bench.folder / "facts.zip").write_bytes(data)
    found = sha256 or hashlib.sha256(data).hexdigest()
    (bench.folder / "provision.toml").write_text(f'[facts]\nsha256 = "{found}"\n{rest}\n')
    return found


def releases(bench: Bench) -> str:
    """The keys of the table of torch that `facts list` prints."""
    return bench.run("facts", "list", "torch").stdout


def test_facts_from_a_file(bench: Bench) -> None:
    spec = bench.spec(small_spec("tiny"))
    sha256 = pin(bench, archive())
    before = bench.run("lint", spec.name)
    assert before.returncode == 2
    assert f"provision.toml:2:1: the facts {sha256[:12]} are not on this machine" in before.stderr
    assert "run `provision facts fetch`" in before.stderr
    fetched = bench.run("facts", "fetch", "--output-format", "json")
    assert (fetched.returncode, json.loads(fetched.stdout)["fetched"]) == (0, True)
    assert "2.15.9" in releases(bench)
    assert bench.run("lint", spec.name).returncode == 0
    (bench.folder / "facts.zip").unlink()  # it is on this machine now
    assert "are on this machine" in bench.run("facts", "fetch").stdout
    (bench.folder / "provision.toml").unlink()
    assert "2.15.9" not in releases(bench)


def test_the_rules_use_them(bench: Bench) -> None:
    spec = bench.spec(
        'apiVersion: provision/v1\ngpu: none\npython: "3.12"\npackages: ["torch==2.15.9"]\n'
    )
    assert "PKG" in bench.run("lint", spec.name).stdout
    pin(bench, archive())
    assert bench.run("facts", "fetch").returncode == 0
    assert "PKG" not in bench.run("lint", spec.name).stdout


def test_facts_from_an_index(bench: Bench, tmp_path: Path) -> None:
    wheel = tmp_path / "our_facts-1.0-py3-none-any.whl"
    data = archive(folder="provision/facts/")
    wheel.write_bytes(data)
    make_index(tmp_path / "served", (wheel,))
    with served(tmp_path / "served") as address:
        named = f'index = "{address}"\nname = "Our.Facts"'
        pin(bench, data, named)
        done = bench.run("facts", "fetch")
        assert done.returncode == 0, done.stderr
        assert "2.15.9" in releases(bench)
        pin(bench, data, named, "0" * 64)
        other = bench.run("facts", "fetch")
        assert other.returncode == 2
        assert "lists no file with this hash" in other.stderr
        pin(bench, archive(COMPILED), named.replace("Our.Facts", "theirs"))
        assert "does not know the package" in bench.run("facts", "fetch").stderr
    pin(bench, archive(COMPILED), named)
    gone = bench.run("facts", "fetch")
    assert gone.returncode == 2
    assert "index facts could not be reached" in gone.stderr


OLD = COMPILED.replace('"schema": 2', '"schema": 1', 1)
LATER = COMPILED.replace('"schema": 2', '"schema": 99', 1)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (lambda: archive(OLD), "facts.zip are for an earlier version of provision"),
        (lambda: archive(LATER), "facts.zip are for a later version of provision"),
        (lambda: archive()[:-30], "cannot be used"),
        (lambda: b"no zip", "File is not a zip file"),
        (lambda: archive(""), "compiled.json is missing"),
        (lambda: archive(leave_out="zones.json"), "it has no on_demand/zones.json"),
        (lambda: archive(NEWER[:-100]), "compiled.json is not valid JSON"),
        (lambda: archive(NEWER.replace('"release"', '"relese"')), "why: compiled.json: TypeError"),
    ],
    ids=["old", "later", "cut", "text", "empty", "table", "json", "column"],
)
def test_an_archive_that_cannot_be_used(
    bench: Bench, data: Callable[[], bytes], message: str
) -> None:
    pin(bench, data())
    done = bench.run("facts", "fetch")
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert bench.run("facts", "list").returncode == 2  # nothing of it was kept


def test_another_hash(bench: Bench) -> None:
    sha256 = pin(bench, archive())
    (bench.folder / "facts.zip").write_bytes(archive(COMPILED))
    done = bench.run("facts", "fetch")
    assert done.returncode == 1
    assert "provision.toml:2:1 pins" in done.stderr
    assert f"expected {sha256}" in done.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('file = "facts.zip"', "facts.file: expected sha256"),
        ('sha256 = "12"\nfile = "facts.zip"', "facts.sha256: expected sha256, the archive's hash"),
        ('sha256 = "{0}"', "expected either `file`, or `index` and `name`"),
        ('sha256 = "{0}"\nfile = "a"\nname = "b"', "expected either `file`, or `index`"),
        ('sha256 = "{0}"\nfile = 3', "facts.file: expected a string"),
        ('sha256 = "{0}"\nindex = "ftp://x"\nname = "b"', "facts.index: expected the address"),
        ('sha256 = "{0}"\nindex = "https://a:b@x"\nname = "b"', "without user name and password"),
        ('sha256 = "{0}"\nindex = "https://x"\nname = "../b"', "facts.name: expected the name"),
        ('sha256 = "{0}"\npath = "a"', "facts.path: unknown key path"),
        ('sha256 = "{0}"\nfile = "none.zip"', "provision.toml:2:1: the facts cannot be read"),
    ],
)
def test_a_pin_that_does_not_fit(bench: Bench, text: str, message: str) -> None:
    (bench.folder / "provision.toml").write_text(f"[facts]\n{text.format('0' * 64)}\n")
    done = bench.run("facts", "fetch")
    assert done.returncode == 2
    assert message in done.stderr
    assert "a:b@" not in done.stderr


def test_nothing_is_pinned(bench: Bench) -> None:
    done = bench.run("facts", "fetch")
    assert done.returncode == 2
    assert "this project pins no facts" in done.stderr


def test_a_change_cannot_pin_other_facts_for_its_comparison(bench: Bench) -> None:
    """With --diff-base, the facts are those of the base, as its policy is."""
    spec = bench.spec('apiVersion: provision/v1\ngpu: none\npython: "3.12"\npackages: [numpy]\n')
    for words in ("init -q", "add spec.yaml", "-c user.name=a -c user.email=a@b commit -qm a"):
        subprocess.run(["git", *words.split()], cwd=bench.folder, check=True)
    spec.write_text(spec.read_text().replace("numpy", '"torch==2.15.9"'))
    pin(bench, archive())
    assert bench.run("facts", "fetch").returncode == 0
    assert "PKG" not in bench.run("lint", spec.name).stdout
    assert "PKG" in bench.run("lint", spec.name, "--diff-base", "HEAD").stdout
