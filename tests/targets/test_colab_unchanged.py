"""Rendering of a Colab target whose notebook is up to date: nothing is read or compressed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from provision.agent.core.code_files import CodeFile, CodeManifest
from provision.effects.code import CodeTree
from provision.facts import load_facts
from provision.targets import TargetContext
from provision.targets.colab.payload import compress
from provision.targets.colab.records import NotebookRecord
from provision.targets.colab.rendered_files import RenderedFiles, render_files
from tests.targets.colab_places import place

CELL = "spec.colab.colab.py"
CONTENTS = {"train.py": b"print(1)\n"}


def with_code(contents: Mapping[str, bytes], commit: str = "", **fields: object) -> TargetContext:
    """A target with one file of code, which can be read if it is in `contents`."""
    rows = [
        CodeFile(path, 0o100644, hashlib.sha256(content).hexdigest())
        for path, content in CONTENTS.items()
    ]
    code = CodeTree(Path("/project"), CodeManifest(tuple(rows), commit), contents)
    return replace(place(env=fields), code=code)


def record(made: RenderedFiles, files: Mapping[str, bytes]) -> NotebookRecord:
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    return NotebookRecord(
        "", "browser", (), digests, made.nonce, "", "", made.sha256, inputs=made.inputs
    )


def test_nothing_is_read_or_compressed() -> None:
    made = render_files(with_code(CONTENTS), load_facts())
    files = made.merge_files({})
    compress.cache_clear()
    again = render_files(with_code({}), load_facts(), existing=files, recorded=record(made, files))
    assert again == made
    assert again.merge_files(files) == files
    assert compress.cache_info().misses == 1, "the description of the code"


@pytest.mark.parametrize("change", ["commit", "environment", "cell", "inputs", "record"])
def test_everything_else_is_packed(change: str) -> None:
    made = render_files(with_code(CONTENTS), load_facts())
    files = made.merge_files({})
    recorded: NotebookRecord | None = record(made, files)
    context = with_code({})
    if change == "commit":
        context = with_code({}, "c" * 40)
    elif change == "environment":
        context = with_code({}, A="b")
    elif change == "cell":
        files = {**files, CELL: files[CELL] + b"\n"}
    elif change == "inputs":
        recorded = replace(record(made, files), inputs="")
    else:
        recorded = None
    with pytest.raises(KeyError, match=r"train\.py"):
        render_files(context, load_facts(), existing=files, recorded=recorded)


def test_a_payload_that_was_elsewhere_is_packed_into_the_cell() -> None:
    bucket = {"bucket": "gs://my-bucket/p"}
    elsewhere = replace(place(colab=bucket), code=with_code(CONTENTS).code)
    made = render_files(elsewhere, load_facts())
    files = made.merge_files({})
    embedded = place(colab={**bucket, "payload": "embedded"})
    fresh = render_files(
        replace(embedded, code=with_code(CONTENTS).code),
        load_facts(),
        existing=files,
        recorded=record(made, files),
    )
    assert fresh.inputs == made.inputs
    assert (
        fresh.cell
        == render_files(replace(embedded, code=with_code(CONTENTS).code), load_facts()).cell
    )
