"""The installer's note in an environment is read as context, and nothing depends on its being
there.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from provision.agent.probe.context import ObserverContext
from provision.agent.probe.expectations import parse_expectations
from provision.agent.probe.model import ReadingClass
from provision.agent.probe.observing import observers_of
from provision.agent.probe.readings import class_of_reading


@pytest.mark.parametrize(
    ("note", "told"),
    [
        (
            '{"counts": {"hash-checked": 5, "preinstalled": 0, "reinstalled": 1}}',
            {"hash-checked": 5, "reinstalled": 1},
        ),
        ('{"counts": {}}', {}),
        (None, None),
        ("", None),
        ("{", None),
        ("[]", None),
        ("[" * 100_000, None),
        ('{"counts": 5}', None),
        ('{"counts": {"hash-checked": "all"}}', None),
        ('{"packages": {}}', None),
    ],
)
def test_the_note_is_read_strictly_and_never_in_the_way(
    tmp_path: Path, document: Callable[..., dict[str, Any]], note: str | None, told: Any
) -> None:
    if note is not None:
        (tmp_path / "installed.json").write_text(note)
    bench = ObserverContext(parse_expectations(document(python__prefix=str(tmp_path))), tmp_path)
    assert observers_of("packages")["P02"](bench)["packages.provenance"] == told


def test_it_is_context_and_no_part_of_the_identity() -> None:
    assert class_of_reading("packages.provenance") is ReadingClass.CONTEXT
