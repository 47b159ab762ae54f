"""provision lock: an error about an old release names the line that excludes newer ones."""

from __future__ import annotations

from pathlib import Path

from tests.rig import Bench, make_index, make_wheel, small_spec


def test_the_pin_that_excludes_newer_releases_is_named(bench: Bench, tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    old_needs = ("pyarrow", "tqdm")
    make_index(
        tmp_path / "index",
        (
            make_wheel(wheels, "datasets", "1.1.1", requires=old_needs),
            make_wheel(wheels, "datasets", "5.2.0", requires=("pyarrow>=24", "tqdm>=4.66.3")),
            make_wheel(wheels, "pyarrow", "26.0.1"),
            make_wheel(wheels, "tqdm", "4.66.1"),
            make_wheel(wheels, "tqdm", "4.66.3"),
        ),
    )
    bench.spec(small_spec("datasets", "tqdm==4.66.1"))
    done = bench.run("lock", "spec.yaml")
    shown = " ".join(done.stderr.split())

    assert done.returncode == 1
    assert "datasets 1.1.1 needs pyarrow<21" in shown, done
    assert "datasets 1.1.1 was chosen because 5.2.0 does not fit: spec.yaml:" in shown
    assert "requires tqdm==4.66.1." in shown


def test_a_release_that_the_spec_itself_asks_for_is_not_explained(
    bench: Bench, tmp_path: Path
) -> None:
    wheels = tmp_path / "wheels"
    make_index(
        tmp_path / "index",
        (
            make_wheel(wheels, "datasets", "1.1.1", requires=("pyarrow",)),
            make_wheel(wheels, "pyarrow", "26.0.1"),
        ),
    )
    bench.spec(small_spec("datasets==1.1.1"))
    done = bench.run("lock", "spec.yaml")

    assert "datasets 1.1.1 needs pyarrow<21" in " ".join(done.stderr.split()), done
    assert "was chosen because" not in done.stderr
    assert "searching for the reason" not in done.stderr
