"""Troubles that people reported elsewhere, written as specs: what lint says of them, and what it
does not.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from provision.diagnostics import Severity
from provision.rules import RULES, ResolvedSet
from tests.rules.conftest import Ask

CASES = yaml.load(
    Path(__file__).with_name("outside_packages.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader
)


def _id(case: dict[str, Any]) -> str:
    return f"{case['source']}-{'-'.join(case['expect']) or 'none'}"


@pytest.mark.parametrize("case", CASES, ids=_id)
def test_errors_and_warnings_are_exactly_these(case: dict[str, Any], ask: Ask) -> None:
    resolved = ResolvedSet(**case["resolved"]) if "resolved" in case else None
    found = ask(yaml.safe_dump(case["spec"], sort_keys=False), resolved).findings
    assert {one.id for one in found if one.severity in (Severity.ERROR, Severity.WARNING)} == set(
        case["expect"]
    ), [one.message for one in found]


@pytest.mark.parametrize("case", CASES, ids=_id)
def test_a_case_is_whole(case: dict[str, Any]) -> None:
    assert set(case) - {"resolved"} == {"source", "spec", "expect", "what"}
    assert re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", case["source"])
    assert set(case["expect"]) <= {rule.id for rule in RULES}
