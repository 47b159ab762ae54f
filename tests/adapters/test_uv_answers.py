"""What uv's answers mean: a conflict stays a conflict whatever its packages are called, and a long
derivation is shown by its end.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from provision.adapters.uv.errors import error_from_output
from provision.effects.packages import IndexSource, PackageSources
from tests.rig import Bench, make_index, make_wheel, small_spec


@pytest.mark.parametrize("name", ["certificate-tool", "timed-out", "client-error", "dns-error"])
def test_a_conflict_is_no_network_error_whatever_its_packages_are_called(
    bench: Bench, tmp_path: Path, name: str
) -> None:
    make_index(tmp_path / "index", (make_wheel(tmp_path / "wheels", name, "1.0"),))
    bench.spec(small_spec(f"{name}==9"))
    done = bench.run("lock", "spec.yaml")
    assert done.returncode == 1, done.stderr
    assert "no set of versions satisfies the spec" in done.stderr


def test_a_wheel_that_lies_in_two_folders_is_no_conflict(bench: Bench, tmp_path: Path) -> None:
    folders = (tmp_path / "one", tmp_path / "two")
    for folder in folders:
        make_wheel(folder, "homemade", "1.0")
    bench.spec(small_spec("homemade"))
    done = bench.run("lock", "spec.yaml", PIP_FIND_LINKS=" ".join(map(str, (*folders, folders[0]))))
    assert done.returncode == 0, done.stderr


def test_a_long_derivation_is_shown_by_its_end_and_kept_whole_in_a_file(
    bench: Bench, tmp_path: Path
) -> None:
    wheels = [
        make_wheel(tmp_path / "w", f"p{n}", "1.0", requires=(f"p{n + 1}>={1 + n % 2}",))
        for n in range(20)
    ]
    wheels += [
        make_wheel(tmp_path / "w", f"p{n}", f"{v}.0", requires=(f"p{n + 1}>={v}",))
        for n in range(20)
        for v in (2, 3)
    ]
    make_index(tmp_path / "index", tuple(wheels))
    bench.spec(small_spec("p0"))
    (tmp_path / "scratch").mkdir()
    done = bench.run("lock", "spec.yaml", TMPDIR=str(tmp_path / "scratch"))
    assert done.returncode == 1
    said = re.search(r"\.\.\. (\d+) earlier lines are in (\S+)", done.stderr)
    assert said, done.stderr
    assert len(done.stderr.splitlines()) < 50
    assert "unsatisfiable" in done.stderr, "the end is where uv concludes"
    whole = Path(said[2]).read_text()
    assert len(whole.splitlines()) == int(said[1]) + 40
    assert whole.splitlines()[-1].strip() in done.stderr
    assert [path.name for path in (tmp_path / "scratch").iterdir()] == [Path(said[2]).name], (
        "nothing else is left behind"
    )


def test_exclude_newer_is_named_where_it_hides_everything(bench: Bench) -> None:
    """The rig's index tells no day of upload, and uv then hides all that it has."""
    bench.spec(small_spec("alpha", extra="exclude_newer: 2026-01-01\n"))
    done = bench.run("lock", "spec.yaml")
    assert done.returncode == 1
    assert (
        "`exclude_newer: 2026-01-01` hides later releases, and everything on an "
        "index without upload dates" in done.stderr
    )
    assert "check the spelling" not in done.stderr


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago"])
def test_a_day_is_the_same_day_in_every_time_zone(bench: Bench, tmp_path: Path, zone: str) -> None:
    """The second release came in the last minute of the day, by UTC; the third in the first one of
    the next.
    """
    days = {
        "1.0": "2025-10-01T12:00:00Z",
        "2.0": "2025-10-12T23:59:00Z",
        "3.0": "2025-10-13T00:01:00Z",
    }
    wheels = [make_wheel(tmp_path / "dated" / "dated", "dated", version) for version in days]
    links = [
        f'<a href="{wheel.name}#sha256={hashlib.sha256(wheel.read_bytes()).hexdigest()}" '
        f'data-upload-time="{day}">{wheel.name}</a>'
        for wheel, day in zip(wheels, days.values(), strict=True)
    ]
    (tmp_path / "dated/dated/index.html").write_text("<!DOCTYPE html>\n" + "\n".join(links))
    bench.spec(small_spec("dated", extra="exclude_newer: 2025-10-12\n"))
    done = bench.run(
        "lock", "spec.yaml", PROVISION_INDEX_PYPI=(tmp_path / "dated").as_uri(), TZ=zone
    )
    assert done.returncode == 0, done.stderr
    assert '"version": "2.0"' in (bench.folder / "spec.lock").read_text()


@pytest.mark.parametrize(
    ("address", "says", "says_not"),
    [
        (
            "https://torch.example/cpu/torch/",
            "to use a mirror of index pytorch-cpu, set PROVISION_INDEX_PYTORCH_CPU",
            "PYPI",
        ),
        (
            "https://packages.example/simple/jinja2/",
            (
                "or an environment variable: PROVISION_INDEX_PYPI (default index), "
                "PROVISION_INDEX_PYTORCH_CPU (index pytorch-cpu)"
            ),
            "CU128",
        ),
    ],
)
def test_the_variable_of_the_index_that_was_asked_is_named(
    address: str, says: str, says_not: str
) -> None:
    stood_in = IndexSource(
        "pytorch-cu128", "https://torch.example/cu128", (Path("torch-2.11.0-py3-none-any.whl"),)
    )
    sources = PackageSources(
        IndexSource("pypi", ""), (IndexSource("pytorch-cpu", "https://torch.example/cpu"), stood_in)
    )
    error = error_from_output(
        "lock", f"Failed to fetch: {address}\n  cause: dns error", 2, None, sources
    )
    assert says in error.hint
    assert says_not not in error.hint
