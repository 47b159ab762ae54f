"""No set of versions: the message says which lines ask for what, and a change that uv was able to
resolve.
"""

from __future__ import annotations

import json
from pathlib import Path

from provision.facts import load_facts
from provision.spec import Spec
from provision.suggest.search import find_suggestions
from tests.rig import MINOR, Bench, make_index, make_wheel, small_spec


def test_the_bound_that_is_in_the_way_is_found_by_trying(bench: Bench) -> None:
    bench.spec(small_spec("alpha>=2", "beta"))
    done = bench.run("lock", "spec.yaml")
    assert done.returncode == 1
    assert "spec.yaml:4:5 requires alpha>=2" in done.stderr
    assert "spec.yaml:5:5 requires beta" in done.stderr
    assert "tried with uv: alpha==1.0 instead of alpha>=2 resolves" in done.stderr
    assert not (bench.folder / "spec.lock").exists()


def test_a_line_of_an_extended_file_is_named_where_it_stands(bench: Bench) -> None:
    (bench.folder / "provision.toml").write_text("")
    bench.spec(small_spec("alpha>=2"), "base.yaml")
    bench.spec("extends: base.yaml\npackages: [beta]\n")
    done = bench.run("lock", "spec.yaml")
    assert done.returncode == 1
    assert "base.yaml:4:5 requires alpha>=2" in done.stderr
    assert "spec.yaml:2:12 requires beta" in done.stderr


def test_another_python_is_found_where_no_bound_is_in_the_way(bench: Bench, tmp_path: Path) -> None:
    """The wheel is for this Python alone, and the spec requires the next one."""
    tag = f"cp{MINOR.replace('.', '')}"
    make_index(
        tmp_path / "index",
        (
            make_wheel(
                tmp_path / "wheels", "native", "1.0", tag=f"{tag}-{tag}-manylinux_2_17_x86_64"
            ),
        ),
    )
    later = f"3.{int(MINOR.partition('.')[2]) + 1}"
    bench.spec(small_spec("native").replace(MINOR, later))
    done = bench.run("lock", "spec.yaml")
    assert done.returncode == 1
    assert f'tried with uv: python: "{MINOR}" instead of "{later}" resolves' in done.stderr


def test_no_way_out_is_not_made_up(bench: Bench) -> None:
    bench.spec(small_spec("alpha>=2", "nowhere"))
    done = bench.run("lock", "spec.yaml")
    assert done.returncode == 1
    assert "nowhere" in done.stderr
    assert "tried with uv" not in done.stderr


def test_what_a_rule_minds_is_no_way_out(bench: Bench, tmp_path: Path) -> None:
    """Without its bound transformers would be a release that needs another accelerate than the one
    that is asked for.
    """
    wheels = tmp_path / "wheels"
    make_index(
        tmp_path / "index",
        (make_wheel(wheels, "transformers", "5.13.0"), make_wheel(wheels, "accelerate", "0.20.0")),
    )
    bench.spec(
        f'gpu: none\npython: "{MINOR}"\npackages: [transformers==4.29.2, accelerate==0.20.0]\n'
    )
    done = bench.run("lock", "spec.yaml", "--output-format", "json")
    assert done.returncode == 1
    told = json.loads(done.stdout)["error"]["help"]
    assert "transformers==5.13.0" not in told


def test_a_refuted_spec_is_not_suggested_again() -> None:
    spec = Spec.model_validate(
        {
            "gpu": "none",
            "python": "3.12",
            "packages": ["torch==2.13.*"],
            "training": {"framework": "none"},
        }
    )
    assert not find_suggestions(spec, load_facts(), most=3).suggestions[0].changes
    found = find_suggestions(
        spec, load_facts(), most=3, refuted=(("python",), ("packages", 0))
    ).suggestions
    assert found
    assert all(one.changes for one in found)
