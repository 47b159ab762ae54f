"""`provision add` and `provision remove`: spec and lock change together, and little else moves."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from provision.adapters import RealSystem
from provision.commands.shared.edited_spec import write_together
from provision.errors import ExternalError, Refused
from tests.rig import Bench, make_index, make_wheel, small_spec


def versions(bench: Bench) -> dict[str, str]:
    rows = json.loads((bench.folder / "spec.lock").read_text())["packages"]
    return {row["name"]: row["version"] for row in rows}


@pytest.fixture
def aged(bench: Bench, tmp_path: Path) -> Bench:
    """A lock of `lead` and `led` 1.0, each with a release 2.0 since, and `fresh`, not locked."""
    wheels = tmp_path / "wheels"
    old = (make_wheel(wheels, "lead", "1.0", requires=("led",)), make_wheel(wheels, "led", "1.0"))
    make_index(tmp_path / "index", old)
    bench.spec("# mine\n" + small_spec("lead # why"))
    assert bench.run("lock", "spec.yaml").returncode == 0
    new = (
        make_wheel(wheels, "lead", "2.0", requires=("led",)),
        make_wheel(wheels, "led", "2.0"),
        make_wheel(wheels, "fresh", "1.0", requires=("led",)),
        make_wheel(wheels, "strict", "1.0", requires=("led>=2",)),
    )
    make_index(tmp_path / "index", (*old, *new))
    return bench


def test_an_added_package_moves_nothing_else(aged: Bench) -> None:
    done = aged.run("add", "fresh", "spec.yaml")
    assert done.returncode == 0, done.stderr
    assert versions(aged) == {"lead": "1.0", "led": "1.0", "fresh": "1.0"}
    assert "+ fresh 1.0" in done.stdout
    assert "2 unchanged" in done.stdout
    text = (aged.folder / "spec.yaml").read_text()
    assert text.startswith("# mine\n")
    assert "  - lead # why\n  - fresh\n" in text
    assert aged.run("lock", "--check", "spec.yaml").returncode == 0


def test_what_must_move_moves_and_is_named(aged: Bench) -> None:
    done = aged.run("add", "strict", "spec.yaml", "--output-format", "json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    moved = {row["name"]: (row["old"], row["new"]) for row in document["packages"]}
    assert moved == {"strict": (None, "1.0"), "led": ("1.0", "2.0")}
    assert versions(aged)["lead"] == "1.0"


def test_a_listed_package_is_changed(aged: Bench) -> None:
    done = aged.run("add", "lead>=2", "spec.yaml")
    assert done.returncode == 0, done.stderr
    assert "~ lead 1.0" in done.stdout
    assert versions(aged) == {"lead": "2.0", "led": "1.0"}
    assert "  - lead>=2 # why\n" in (aged.folder / "spec.yaml").read_text()
    again = aged.run("add", "lead", "spec.yaml")
    assert "already contain this" in again.stdout


def test_a_removed_package_takes_what_only_it_needed(aged: Bench) -> None:
    assert aged.run("add", "fresh", "spec.yaml").returncode == 0
    done = aged.run("remove", "lead", "spec.yaml")
    assert done.returncode == 0, done.stderr
    assert "- lead 1.0" in done.stdout
    assert versions(aged) == {"led": "1.0", "fresh": "1.0"}


@pytest.mark.long(after=5)
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("add", "no-such-thing"), "no-such-thing"),
        (("add", "lead>=9"), "lead"),
        (("add", "fresh", "Fresh>1"), "fresh is given twice"),
        (("add", "fresh @ https://example.org/x.whl"), "expected a package from an index"),
        (("remove", "leed"), "did you mean lead?"),
        (("remove", "led"), "does not list the package"),
        (("remove", "lead>=1"), "without extras or a version"),
        (("add", "fresh", "--yes"), "--yes needs --apply"),
        (("add", "fresh", "other.yaml"), "only one spec is allowed"),
        (("add",), "expected a package before"),
    ],
)
def test_nothing_is_written_when_it_cannot_be_done(
    aged: Bench, words: tuple[str, ...], expected: str
) -> None:
    before = [(aged.folder / name).read_bytes() for name in ("spec.yaml", "spec.lock")]
    done = aged.run(*words, "spec.yaml")
    assert done.returncode in (1, 2)
    assert expected in done.stderr
    assert before == [(aged.folder / name).read_bytes() for name in ("spec.yaml", "spec.lock")]


@pytest.mark.parametrize(
    ("package", "expected"),
    [
        ("transfomers", "transfomers looks like transformers, a well-known package"),
        ("fresh==9.9", "spec.yaml (with this change) requires fresh==9.9"),
        ("sklearn", "= help: use scikit-learn"),
    ],
)
def test_a_failed_add_names_no_place_or_fix_in_a_text_that_is_not_saved(
    aged: Bench, package: str, expected: str
) -> None:
    done = aged.run("add", package, "spec.yaml")
    assert done.returncode == 1
    assert "; nothing was changed" in done.stderr
    assert expected in done.stderr
    assert "--fix" not in done.stderr
    assert re.search(r"spec.yaml:\d+:\d+ requires", done.stderr) is None


def test_a_list_behind_an_anchor_is_refused(bench: Bench) -> None:
    bench.spec(small_spec("alpha").replace("packages:", "packages: &p"))
    done = bench.run("add", "beta", "spec.yaml")
    assert done.returncode == 2
    assert "anchor" in done.stderr
    assert "spec.yaml:4:" in done.stderr


def test_a_package_of_an_extended_file_is_named(bench: Bench) -> None:
    (bench.folder / "base.yaml").write_text(small_spec("alpha"))
    bench.spec("extends: base.yaml\npackages: [beta]\n")
    done = bench.run("remove", "alpha", "spec.yaml")
    assert done.returncode == 2
    assert "base.yaml, which the spec extends" in done.stderr
    assert bench.run("add", "alpha<9", "spec.yaml").returncode == 0
    assert "packages: [beta, alpha<9]" in (bench.folder / "spec.yaml").read_text()


def test_apply_goes_on_to_apply(applied: Bench) -> None:
    done = applied.run("add", "beta", "spec.yaml", "--apply", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "+ beta" in done.stderr
    assert "VERIFIED" in done.stdout


def test_packages_that_stay_are_copied_from_the_earlier_environment(applied: Bench) -> None:
    """Their files are the same, nothing of them is installed again, and the verdict holds."""
    applied.spec(small_spec("alpha", "beta"))
    assert applied.run("apply", "spec.yaml", "--yes").returncode == 0
    environment = applied.folder / ".provision/envs/spec.local"
    (code,) = environment.glob("lib/*/site-packages/alpha/__init__.py")
    before, path = code.stat().st_ino, environment.resolve()
    # Without its cache, uv can install nothing.
    words = ("remove", "beta", "spec.yaml", "--apply", "--yes")
    done = applied.run(*words, UV_CACHE_DIR=str(applied.folder / "empty"), UV_OFFLINE="1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "VERIFIED" in done.stdout
    assert environment.resolve() != path
    assert code.stat().st_ino == before
    assert not list(environment.glob("lib/*/site-packages/beta*"))
    note = json.loads((environment / "installed.json").read_text())
    assert (note["mode"], note["counts"]["hash-checked"]) == ("own", 1)


def test_a_failed_write_restores_what_was_written(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "missing" / "second"
    first.write_text("old")
    fresh = tmp_path / "fresh"
    with pytest.raises(ExternalError):
        write_together(
            {first: "new", fresh: "new", second: "new"}, {first: b"old"}, RealSystem(), print
        )
    assert first.read_text() == "old"
    assert not fresh.exists()


def test_a_spec_that_changed_meanwhile_is_kept(tmp_path: Path) -> None:
    first = tmp_path / "first"
    first.write_text("edited")
    with pytest.raises(Refused, match="changed while"):
        write_together({first: "new"}, {first: b"old"}, RealSystem(), print)
    assert first.read_text() == "edited"
