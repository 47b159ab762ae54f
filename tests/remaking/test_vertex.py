"""The regions and accelerators of Vertex AI in the tables are those of its discovery document."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
import yaml

import remake_vertex
from provision.facts import load_facts
from provision.sandbox.discovery import VERTEX, find_discovery_document

pytest.importorskip("googleapiclient")


@pytest.fixture(scope="module")
def document() -> Mapping[str, Any]:
    path = find_discovery_document(VERTEX)
    assert path is not None
    found: Mapping[str, Any] = json.loads(path.read_bytes())
    return found


def test_the_tables_are_as_the_discovery_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert remake_vertex.main(["--check"]) == 0, capsys.readouterr().out


def test_each_difference_is_named(document: Mapping[str, Any]) -> None:
    regions, gpus = remake_vertex.regions_of(document), remake_vertex.gpus_of(document)
    changed = [*regions[1:], "moon-east1"]
    found = list(remake_vertex.differences(load_facts(), changed, {*gpus} - {"NVIDIA_L4"}))
    assert found == [
        "moon-east1 has an endpoint, and is not in the table",
        f"{regions[0]} is in the table, and has no endpoint",
        "L4: NVIDIA_L4 is not an accelerator of the API",
    ]


def test_only_the_row_is_written(document: Mapping[str, Any]) -> None:
    text, revision = remake_vertex.TABLE.read_text(), str(document["revision"])
    regions = remake_vertex.regions_of(document)
    before = yaml.safe_load(text)
    assert yaml.safe_load(remake_vertex.rewrite(text, regions, revision)) == before
    after = yaml.safe_load(remake_vertex.rewrite(text, ["moon-east1"], "1"))
    changed = [
        new
        for old, new in zip(before["conditions"], after["conditions"], strict=True)
        if old != new
    ]
    assert [(row["name"], row["value"]) for row in changed] == [
        ("enterprise regions", "moon-east1")
    ]
    assert "revision 1 (" in changed[0]["source"]
    with pytest.raises(SystemExit, match="was not found"):
        remake_vertex.rewrite("", regions, "1")
