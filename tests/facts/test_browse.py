"""Looking facts up: what a key means, what follows from a row, and how old it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from provision.errors import ProvisionError
from provision.facts import COMPILED_TABLES, load_facts
from provision.facts.consequences import age_in_days, derive_consequences
from provision.facts.table_lookup import find_rows, load_tables

KNOWN = load_tables(COMPILED_TABLES)
FACTS = load_facts()


def keys(text: str) -> list[str]:
    return [f"{entry.table} {entry.key}" for entry in find_rows(KNOWN, text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("torch:2.11.0:cu128", ["torch 2.11.0", "builds 2.11.0:cu128:linux-x86_64"]),
        ("torch:2.11:cu128", ["torch 2.11.0", "builds 2.11.0:cu128:linux-x86_64"]),
        ("gpu:L4", ["gpus L4"]),
        ("gpus:a100", ["gpus A100-40GB"]),
        ("cuda:12.8", ["cuda.toolkits 12.8"]),
        ("driver:580", ["cuda.drivers 580"]),
        ("runtime:2026.07", ["colab.runtimes 2026.07"]),
        ("transformers:5.8.0", ["transformers 5.4.0"]),
        ("accelerate:1.10.0", ["packages.runs accelerate:1.3.0"]),
        ("extensions.bitsandbytes:0.50.2", ["extensions.bitsandbytes 0.50.2"]),
        ("g2-standard-4:L4:us-central1", ["prices g2-standard-4:L4:us-central1"]),
        ("torch:2.11.0:cu999", []),
        ("torch:99.0", []),
        ("nonsense", []),
        ("", []),
        (":", []),
    ],
)
def test_what_a_key_means(text: str, found: list[str]) -> None:
    assert keys(text) == found


def test_every_row_is_found_by_its_table_and_key() -> None:
    for table in KNOWN.values():
        sample = table.rows[:: max(1, len(table.rows) // 5)]
        with_colons = (row for row in table.rows if any(":" in part for part in row.key_parts))
        for entry in (*sample, *with_colons):
            assert entry in find_rows(KNOWN, f"{table.name}:{entry.key}"), (table.name, entry.key)


def test_every_table_tells_what_it_is_and_where_from() -> None:
    assert len(KNOWN) > 30
    for table in KNOWN.values():
        assert table.about
        assert table.rows
        assert table.evidence.source
        assert all(entry.evidence.confidence in ("high", "medium", "low") for entry in table.rows)


def test_a_row_has_its_own_evidence_where_it_brings_any() -> None:
    price = find_rows(KNOWN, "prices:gpu-part-of-8-gpu-machine")[0]
    assert (price.evidence.confidence, price.evidence.as_of) == ("low", "2026-07-09")


def test_what_follows_from_a_build() -> None:
    (entry,) = find_rows(KNOWN, "builds:2.11.0:cu128:linux-x86_64")
    runs, lacks, driver = derive_consequences(entry, FACTS)
    assert "T4, L4" in runs
    assert "V100" not in runs
    assert "V100" in lacks
    assert "525.60.13" in driver
    (by_ptx,) = find_rows(KNOWN, "builds:2.7.0:cu128:linux-x86_64")
    assert not any("PTX" in sentence for sentence in derive_consequences(by_ptx, FACTS))


def test_what_follows_from_a_card_and_a_toolkit() -> None:
    said = " / ".join(derive_consequences(find_rows(KNOWN, "gpu:V100")[0], FACTS))
    assert "the last driver branch for Volta is 580" in said
    assert "2.14.1, built for cu126" in said
    assert "no torch build" in " ".join(
        derive_consequences(find_rows(KNOWN, "gpu:Jetson-AGX-Orin")[0], FACTS)
    )
    assert "580.65.06" in derive_consequences(find_rows(KNOWN, "cuda:13.0")[0], FACTS)[0]
    assert derive_consequences(find_rows(KNOWN, "prices:g2-standard-4")[0], FACTS) == ()


@pytest.mark.parametrize(
    ("as_of", "now", "days"),
    [
        ("2026-11-20", "2026-11-20T12:00:00Z", 0),
        ("2026-07-30", "2026-11-20T00:00:00Z", 113),
        ("2026-11-20", "2026-11-19", None),
    ],
)
def test_age(as_of: str, now: str, days: int | None) -> None:
    assert age_in_days(as_of, now) == days


def test_damaged_tables_are_said_so(tmp_path: Path) -> None:
    path = tmp_path / "compiled.json"
    for content in (
        '{"schema": 1, "torch": 7}',
        '{"schema": 1, "torch": {"keys": {"rows": ["release"]}}}',
        "{",
    ):
        path.write_text(content)
        with pytest.raises(ProvisionError, match=r"cannot (be )?read"):
            load_tables(path)
