"""The tables that are read when first asked for: what they hold, how fast they come, and that
damage is said.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

from provision.agent.probe.checks.rehearsal import PARAMETER_DIFFERENCE
from provision.agent.probe.proofs.model_shape import choose_shape
from provision.errors import ProvisionError
from provision.facts import COMPILED_TABLES, Facts, lazy_tables
from provision.facts.fact_tables import CompiledTables
from provision.facts.lazy_tables import LAZY_TABLES_FOLDER
from provision.facts.table_lookup import load_tables

READERS: tuple[Callable[[Path], Any], ...] = (
    lazy_tables.load_prices,
    lazy_tables.load_zones,
    lazy_tables.load_symptoms,
    lazy_tables.load_conda_names,
    lazy_tables.load_models,
    lazy_tables.load_tensorflow,
    lazy_tables.load_jax,
    lazy_tables.load_colab_packages,
)


def test_prices_of_a_machine() -> None:
    found = {row.region: row for row in lazy_tables.load_prices() if row.item == "g2-standard-4"}
    assert found["us-central1"].on_demand == pytest.approx(0.7068, abs=0.01)
    assert found["us-central1"].card == "L4"
    assert found["us-central1"].evidence.as_of == "2026-07-30"
    shares = [row for row in lazy_tables.load_prices() if row.item == "gpu-part-of-8-gpu-machine"]
    assert {row.evidence.confidence for row in shares} == {"low"}


def test_zones_of_a_card() -> None:
    found = {row.region: row for row in lazy_tables.load_zones() if row.card == "L4"}
    assert "us-central1-a" in found["us-central1"].zones
    only_region = [row for row in lazy_tables.load_zones() if not row.zones]
    assert only_region
    assert all(row.evidence.confidence == "medium" for row in only_region)


def test_sizes_of_a_model() -> None:
    models = lazy_tables.load_models()
    llama = models["meta-llama/llama-3.1-8b"]
    assert (llama.parameters, llama.hidden_size, llama.layers) == (8030261248, 4096, 32)
    # In small models the embedding is a large share, so it must be counted once if it is shared.
    assert models["qwen/qwen2.5-0.5b"].parameters == 494032768
    confidence = {row.evidence.sources_count: row.evidence.confidence for row in models.values()}
    assert confidence == {0: "high", 1: "medium", 2: "high"}


def test_plugins_of_jax() -> None:
    found = {(row.release, row.cuda): row for row in lazy_tables.load_jax()}
    assert (found["0.5.3", "12"].sm[-1], found["0.5.3", "12"].ptx) == ("9.0", "9.0")
    assert found["0.6.0", "12"].sm[-1] == "12.0"
    assert {row.sm[0] for row in found.values() if row.cuda == "13"} == {"7.5"}
    assert {row.sm[0] for row in found.values() if row.cuda == "12"} == {"5.0"}
    assert "3.11" not in found["0.11.0", "13"].pythons


def test_tensorflow_releases() -> None:
    found = {row.release: row for row in lazy_tables.load_tensorflow()}
    row = found["2.17.1"]
    assert (row.cuda, row.cudnn, row.sm, row.ptx) == (
        "12.3",
        "8",
        ("6.0", "7.0", "8.0", "8.9"),
        "9.0",
    )
    assert "3.12" not in found["2.15.1"].pythons
    releases = [Version(release) for release in found]
    assert releases == sorted(releases)
    assert min(releases) == Version("2.10.0")


def test_the_rehearsal_can_build_each_model() -> None:
    """Check S01 fails if no shape has the declared sizes."""
    for model in lazy_tables.load_models().values():
        built = choose_shape(model.parameters, model.hidden_size, model.layers).parameters
        assert built == pytest.approx(model.parameters, rel=PARAMETER_DIFFERENCE.value), model.id


def test_packages_of_a_runtime() -> None:
    gpu, cpu = (
        lazy_tables.load_colab_packages()["2026.07"],
        lazy_tables.load_colab_packages()["2026.07-cpu"],
    )
    assert (gpu["torch"], cpu["torch"]) == ("2.11.0+cu128", "2.11.0+cpu")
    assert "bitsandbytes" not in gpu


def test_constraints_and_symptoms() -> None:
    constraints = {row.key: row for row in load_tables(COMPILED_TABLES)["constraints"].rows}
    assert constraints["bnb-cc"].values["applies_to"] == "bitsandbytes"
    assert {symptom.id for symptom in lazy_tables.load_symptoms()} >= {
        "driver-too-old",
        "no-kernel-image",
    }


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)
@pytest.mark.parametrize(
    "content",
    [
        None,
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"schema": 2}',
        b'{"schema": 2, "rows": [7], "columns": ["x"]}',
        b"\xff\xfe",
    ],
)
def test_a_damaged_part_is_said_so(
    tmp_path: Path, reader: Callable[[Path], Any], content: bytes | None
) -> None:
    folder = tmp_path / "parts"
    shutil.copytree(LAZY_TABLES_FOLDER, folder)
    for path in folder.iterdir():
        path.write_bytes(content) if content is not None else path.unlink()
    with pytest.raises(ProvisionError, match=r"cannot (be )?read") as caught:
        reader(folder)
    assert "reinstall" in caught.value.hint


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)
def test_a_part_of_a_later_version_is_refused(
    tmp_path: Path, reader: Callable[[Path], Any]
) -> None:
    folder = tmp_path / "parts"
    shutil.copytree(LAZY_TABLES_FOLDER, folder)
    for path in folder.iterdir():
        path.write_text(path.read_text().replace('"schema": 2', '"schema": 3', 1))
    with pytest.raises(ProvisionError, match=r"cannot (be )?read") as caught:
        reader(folder)
    assert "later version" in caught.value.why


def test_what_lint_needs_loads_in_15_milliseconds() -> None:
    """The best of several runs, in CPU time: other work on the machine does not count."""
    best = min(_seconds_of_load() for _ in range(12))
    assert best < 0.015


def _seconds_of_load() -> float:
    start = time.process_time()
    facts = Facts(CompiledTables(COMPILED_TABLES))
    assert facts.windows
    return time.process_time() - start


def test_loading_the_facts_reads_no_part() -> None:
    program = """
import sys
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
from provision.facts import load_facts
load_facts()
print(sum("on_demand" in name for name in opened), sum("compiled.json" in name for name in opened))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["0", "1"]
