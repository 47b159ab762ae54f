"""provision why --fix: each fix it offers is an edit that keeps comments and takes the cause away,
as lint sees it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from provision.adapters import RealSystem
from provision.commands.lint import lint
from provision.commands.why import ErrorLookup, why
from provision.diagnostics import Diagnostic, Severity
from provision.facts.lazy_tables import load_symptoms
from provision.rules import RULES, Example
from provision.verification.error_lookup.symptoms import is_offered_fix

TEXTS = Path(__file__).parents[1] / "symptoms"
PRINTED: dict[str, list[dict[str, Any]]] = yaml.load(
    (TEXTS / "printed.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader
)
BAD = {rule.id: [example for example in rule.bad if example.resolved is None] for rule in RULES}
EXPLAINING = {rule: one.id for one in reversed(load_symptoms()) for rule in one.rules}
"""Each rule that can find the cause of an error, with the first such error."""
FIRST = [
    (symptom, rule, example) for rule, symptom in EXPLAINING.items() for example in BAD[rule][:1]
]
FURTHER = [
    (symptom, rule, example) for rule, symptom in EXPLAINING.items() for example in BAD[rule][1:]
]


def asked(text: str, spec: Path, *, fix: bool) -> ErrorLookup:
    return why(text, spec, None, RealSystem(), lambda _: None, fix=fix)


def left(spec: Path) -> list[Diagnostic]:
    (judged,) = lint((spec,), RealSystem(), lambda _: None).documents
    return list(judged.diagnostics)


@pytest.mark.thorough
@pytest.mark.long(after=1)
@pytest.mark.parametrize(
    ("cases", "least"),
    [(FIRST, {"CUD003", "PKG001", "PKG011", "PKG012", "TRN001"}), (FURTHER, set())],
    ids=["first examples", "further examples"],
)
def test_a_fix_takes_the_cause_away(
    cases: list[tuple[str, str, Example]],
    least: set[str],
    tmp_path: Path,
    subtests: pytest.Subtests,
) -> None:
    fixed = set()
    for symptom, rule, example in cases:
        with subtests.test(f"{symptom} {rule}"):
            spec, text = tmp_path / "mine.yaml", PRINTED[symptom][0]["text"]
            spec.write_text(f"# before\n{example.spec.rstrip()}\n# after\n")
            first = asked(text, spec, fix=False).explanations[0]
            own = [
                one
                for one in first.findings
                if one.id == rule and is_offered_fix(one, likeliest=True)
            ]

            answer = asked(text, spec, fix=True)

            changed = spec.read_text()
            assert changed.startswith("# before\n")
            assert changed.endswith("# after\n")
            assert bool(answer.changed) == (
                changed != f"# before\n{example.spec.rstrip()}\n# after\n"
            )
            if own:
                assert answer.changed
                assert [
                    one
                    for one in left(spec)
                    if one.id == rule and one.severity is not Severity.INFO
                ] == []
                fixed.add(rule)
    assert least <= fixed


OLD = """# Pins that are often written down.
gpu: T4
python: "3.11"
packages:
  - torch==2.0.1        # beside numpy 2
  - datasets==2.14.4    # beside pyarrow 21
"""


def test_only_what_is_about_the_error_is_mended(tmp_path: Path) -> None:
    """Two packages lack a bound; the error is of one of them, and the other stays as it is."""
    spec = tmp_path / "mine.yaml"
    spec.write_text(OLD)
    assert {"PKG010", "PKG011"} <= {one.id for one in left(spec)}

    answer = asked("AttributeError: module 'numpy' has no attribute 'float'", spec, fix=False)
    assert [
        one.id for one in answer.explanations[0].findings
    ] == []  # numpy 1.24 and pyarrow are two things

    answer = asked("AttributeError: _ARRAY_API not found", spec, fix=True)
    assert [one.id for one in answer.explanations[0].findings] == ["PKG011"]
    ids = {one.id for one in left(spec)}
    assert "PKG011" not in ids
    assert "PKG010" in ids
    assert "# beside numpy 2" in spec.read_text()
    assert "# beside pyarrow 21" in spec.read_text()
