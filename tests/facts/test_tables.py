"""The fact tables: compiled form is fresh, rows are whole, versions parse, a damaged file is said
so.
"""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from datetime import UTC, date, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from provision.errors import ProvisionError
from provision.facts import COMPILED_TABLES, Facts, load_facts
from provision.facts.fact_tables import expand_rows
from provision.facts.lazy_tables import LAZY_TABLES_FOLDER
from provision.spec import Platform

ROOT = Path(__file__).parents[2]
TABLES = sorted((COMPILED_TABLES.parent / "tables").glob("*.yaml"))
ALL = (*TABLES, *sorted((COMPILED_TABLES.parent / "tables" / "parts").glob("*.yaml")))


def _script() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "compile_facts", ROOT / "support" / "compile_facts.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def facts() -> Facts:
    return load_facts()


def test_compiled_facts_are_fresh() -> None:
    fresh = _script().compiled(COMPILED_TABLES.parent / "tables")
    assert COMPILED_TABLES.read_text(encoding="utf-8") == fresh, (
        "run python support/compile_facts.py"
    )


def test_a_text_that_yaml_cuts_at_a_comma_is_refused(tmp_path: Path) -> None:
    text = (COMPILED_TABLES.parent / "tables" / "mps.yaml").read_text(encoding="utf-8")
    (tmp_path / "mps.yaml").write_text(f"{text}more: [{{effect: it checks, and it waits}}]\n")
    with pytest.raises(SystemExit, match="quote the text before `, and it waits`"):
        _script().table(tmp_path / "mps.yaml")


def test_compiled_parts_are_fresh() -> None:
    fresh = _script().parts(COMPILED_TABLES.parent / "tables")
    assert {
        path.name: path.read_text(encoding="utf-8") for path in LAZY_TABLES_FOLDER.iterdir()
    } == fresh, "run python support/compile_facts.py"


def test_the_symptoms_of_the_probe_are_fresh() -> None:
    script = _script()
    assert script.DEVICE_SYMPTOMS.read_text(encoding="utf-8") == script.device_symptoms(
        COMPILED_TABLES.parent / "tables"
    ), "run python support/compile_facts.py"


def test_the_symptoms_of_the_probe_name_symptoms() -> None:
    table = yaml.load(
        (COMPILED_TABLES.parent / "tables/parts/symptoms.yaml").read_text(encoding="utf-8"),
        yaml.CSafeLoader,
    )
    known = {row["id"] for row in table["rows"]}
    assert {name for row in table["device_rows"] for name in row.get("symptoms", ())} <= known


def test_a_changed_sheet_makes_its_part_stale_and_no_other(tmp_path: Path) -> None:
    folder = tmp_path / "tables"
    shutil.copytree(COMPILED_TABLES.parent / "tables", folder)
    sheet = folder / "parts" / "prices.csv"
    sheet.write_text(sheet.read_text().replace("3.6734", "3.6735"))
    script = _script()
    moved = script.stale(
        {LAZY_TABLES_FOLDER / name: text for name, text in script.parts(folder).items()}
    )
    assert moved == ["prices.json"]


def test_a_part_that_no_table_makes_is_stale() -> None:
    assert "zones.json" in _script().stale({})


def test_a_changed_table_makes_the_compiled_facts_stale(tmp_path: Path) -> None:
    for path in TABLES:
        (tmp_path / path.name).write_bytes(path.read_bytes())
    wheels = tmp_path / "wheels.yaml"
    wheels.write_text(wheels.read_text().replace("6746dbcb", "00000000"))
    assert _script().compiled(tmp_path) != COMPILED_TABLES.read_text(encoding="utf-8")


def test_the_script_tells_whether_they_are_fresh() -> None:
    done = subprocess.run(
        [sys.executable, "support/compile_facts.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "facts are up to date\n")


def test_a_table_without_evidence_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("source: x\nas_of: 2026-01-01\nrows: []\n")
    with pytest.raises(SystemExit, match="lacks confidence, keys"):
        _script().compiled(tmp_path)


def _counted(tmp_path: Path, head: str, row: str) -> tuple[str, int]:
    """The confidence and the sources of a row in the compiled form of a table."""
    text = f"{head}source: x\nas_of: 2026-01-01\nkeys: {{rows: [id]}}\nrows:\n  - {{id: a{row}}}\n"
    (tmp_path / "rows.yaml").write_text(text)
    table = json.loads(_script().compiled(tmp_path))["rows"]
    evidence = {**table, **table["rows"][0]}
    return evidence["confidence"], evidence["sources_count"]


HAND, READ = "confidence: high\nsources_count: 2\n", "confidence: high\nread_by: support/x.py\n"


@pytest.mark.parametrize(
    ("head", "row", "counted"),
    [
        (READ, "", ("high", 0)),
        (READ, ", source: y", ("medium", 1)),
        (READ, ", source: y, confidence: low", ("low", 1)),
        (READ, ", source: y and z, sources_count: 2", ("high", 2)),
        (HAND, "", ("high", 2)),
        (HAND, ", source: y", ("medium", 1)),
        (HAND, ", source: y and z, sources_count: 2", ("high", 2)),
        (
            READ.replace("high", "medium"),
            ', threads: "o/p#1, o/p#2", confidence: high',
            ("high", 3),
        ),
    ],
)
def test_one_source_caps_the_confidence(
    tmp_path: Path, head: str, row: str, counted: tuple[str, int]
) -> None:
    assert _counted(tmp_path, head, row) == counted


@pytest.mark.parametrize(
    ("head", "row", "message"),
    [
        (HAND, ", source: y, confidence: high", "rows: a: high confidence needs two independent"),
        (HAND.replace("2", "1"), "", "the table: high confidence needs two independent sources"),
        (HAND, ", source: y, sources_count: 0", "rows: a: sources_count is 0, expected a number"),
        (HAND, ", source: y, sources_count: two", "sources_count is 'two', expected a number"),
        (HAND, ", sources_count: 2", "rows: a: sources_count without a source"),
        ("confidence: high\n", "", "a table has read_by, the script that reads it, or sources_c"),
        (HAND + READ, "", "a table has read_by"),
        (
            READ.replace("high", "medium"),
            ", confidence: high",
            "needs a source or thread of its own",
        ),
    ],
)
def test_a_count_that_does_not_fit_is_refused(
    tmp_path: Path, head: str, row: str, message: str
) -> None:
    with pytest.raises(SystemExit, match=f"rows.yaml: .*{message}"):
        _counted(tmp_path, head, row)


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_tables_carry_their_evidence(path: Path) -> None:
    table = yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)
    for row in (table, *_rows(table), *table.get("by", {}).values()):
        evidence = {**table, **row}
        assert evidence["source"].strip()
        assert (
            date(2016, 1, 1)
            < date.fromisoformat(str(evidence["as_of"]))
            <= datetime.now(tz=UTC).date()
        )
        assert evidence["confidence"] in ("high", "medium", "low")


def _rows(table: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        row
        for value in table.values()
        if isinstance(value, list)
        for row in value
        if isinstance(row, dict)
    ]


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_keys_are_unique(path: Path) -> None:
    table = _script().table(path)
    lists = {
        name
        for name, value in table.items()
        if isinstance(value, list) and value and isinstance(value[0], dict | tuple)
    }
    assert lists == set(table["keys"])
    for name, key in table["keys"].items():
        rows = expand_rows(table, name)
        keys = [tuple(row[part] for part in key) for row in rows]
        assert keys
        assert len(keys) == len(set(keys))


def test_no_two_cards_answer_to_one_name(facts: Facts) -> None:
    names = [name.casefold() for card in facts.cards for name in (card.name, *card.aliases)]
    assert len(names) == len(set(names))


def test_versions_parse_and_stand_in_order(facts: Facts) -> None:
    releases = [Version(row.release) for row in facts.torch]
    assert releases == sorted(releases)
    runs = [Version(version) for run in facts.transformers for version in (run.first, run.last)]
    assert runs == sorted(runs)
    for row in facts.torch:
        SpecifierSet(row.python)
        assert row.default in row.builds
        for platform in Platform:
            if platform is not Platform.LINUX_AARCH64:  # 1.10.2 has a wheel for 3.10 there alone
                assert set(row.pythons_on(platform)) <= set(row.pythons)
        assert all(re.fullmatch(r"cu\d{3}", flavour) for flavour in row.builds)
        assert set(row.builds.values()) <= {"high", "medium", "low"}
    for run in facts.transformers:
        SpecifierSet(run.python)
        for bound in run.declared.values():
            SpecifierSet(bound)


def test_floors_never_fall(facts: Facts) -> None:
    """The arithmetic of floors brackets a release between two that were read; that holds only while
    floors rise.
    """
    for name in ("accelerate", "torch"):
        floors = [Version(getattr(run, name)) for run in facts.transformers if getattr(run, name)]
        assert floors == sorted(floors)
        known = [getattr(run, name) is not None for run in facts.transformers]
        assert known == sorted(known)


def test_names_are_canonical_and_lists_apart(facts: Facts) -> None:
    names = [
        *facts.popular,
        *facts.seen,
        *facts.replaced,
        *facts.torch_family,
        *(row.instead for row in facts.replaced.values()),
    ]
    assert all(name == canonicalize_name(name) for name in names)
    assert not facts.popular & facts.seen
    assert {row.instead for row in facts.replaced.values()} <= facts.popular
    assert {row.kind for row in facts.replaced.values()} == {
        "stub",
        "other",
        "abandoned",
        "hostile",
    }
    assert len(facts.popular) > 200


def test_hashes_are_hashes(facts: Facts) -> None:
    assert facts.wheels["torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl"].startswith(
        "6746dbcb"
    )
    assert all(re.fullmatch(r"[0-9a-f]{64}", digest) for digest in facts.wheels.values())


def test_rows_are_whole(facts: Facts) -> None:
    """A field may be None only where its type says what None means."""
    absent = {
        "accelerate",
        "torch",
        "driver_first",
        "driver_bundled",
        "end_of_life",
        "first_driver",
        "bandwidth_gb_s",
        "pythons_aarch64",
        "pythons_windows",
        "pythons_macos",
        "pythons_macos_x86_64",
    }
    tables = (
        facts.torch,
        facts.transformers,
        facts.cards,
        facts.pythons,
        facts.builds.values(),
        facts.toolkits.values(),
        facts.drivers,
        facts.machines.values(),
    )
    for rows in tables:
        assert rows
        assert all(
            value is not None or name in absent
            for row in rows
            for name, value in row._asdict().items()
        )


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b"null",
        b'{"torch": {}}',
        b"\xff\xfe",
        COMPILED_TABLES.read_bytes()[:4000],
    ],
)
def test_a_damaged_file_is_said_so(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "compiled.json"
    path.write_bytes(content)
    with pytest.raises(ProvisionError, match=r"cannot (be )?read") as caught:
        load_facts(path)
    assert "reinstall" in caught.value.hint


def test_a_row_with_a_field_too_many_or_too_few_is_said_so(tmp_path: Path) -> None:
    path = tmp_path / "compiled.json"
    for old, new in (('"cc": "3.7"', '"xx": "3.7"'), ('"rows"', '"lines"')):
        path.write_text(
            COMPILED_TABLES.read_text(encoding="utf-8").replace(old, new), encoding="utf-8"
        )
        with pytest.raises(ProvisionError, match=r"cannot (be )?read"):
            assert load_facts(path).cards


def test_a_missing_file_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(ProvisionError, match=r"cannot (be )?read"):
        load_facts(tmp_path / "none.json")


def test_a_file_of_a_later_version_is_refused_with_the_way_out(tmp_path: Path) -> None:
    path = tmp_path / "compiled.json"
    path.write_text(
        COMPILED_TABLES.read_text(encoding="utf-8").replace('"schema": 2', '"schema": 3', 1),
        encoding="utf-8",
    )
    with pytest.raises(ProvisionError, match=r"cannot (be )?read") as caught:
        load_facts(path)
    assert "later version" in caught.value.why
    assert "update or reinstall provision" in caught.value.hint


def test_the_page_on_the_facts_names_every_table_and_every_script() -> None:
    page, makefile = (
        (ROOT / "docs/reference/facts.md").read_text(encoding="utf-8"),
        (ROOT / "Makefile").read_text(encoding="utf-8"),
    )
    scripts = [
        path.stem
        for pattern in ("remake_*.py", "read_*.py")
        for path in (ROOT / "support").glob(pattern)
    ]
    assert [path.name for path in TABLES if f"`{path.name}`" not in page] == []
    assert [name for name in scripts if f"support/{name}.py" not in page] == []
    assert [name for name in scripts if name.removeprefix("remake_") not in makefile] == []
