"""The words that `check` replaces are words of rules: a rule with other words is noticed here."""

from __future__ import annotations

import re

import pytest

from provision.commands.check import ABOUT_SPECS
from provision.diagnostics import Diagnostic, RouteLocation
from provision.facts import load_facts
from provision.imports.imported_source import SPEC_WORDS, replace_spec_words
from provision.rules import RULES
from tests.rules.conftest import judge_text

FIELDS = ("packages", "python", "cuda", "indexes")
"""Fields of a spec that come from lines of files, at which `check` shows findings."""
OF_SPECS = re.compile(
    r"\b[Ss]pecs?\b|\b[Ll]ock(?:s|ed)?\b|`(?:packages|platforms|cuda|gpu|lock|indexes)`"
    r"|\bset `?[a-z_]+: |\bisolation: |\bexclude_newer\b|\bon target\b"
)
NOT_FROM_FILES = {
    "CUD001": "the tag of a build becomes `cuda`",
    "PKG007": "the names of indexes are chosen, and each has its URL",
    "PKG014": "pip builds packages without being asked",
    "SEC002": "files do not name their indexes",
    "TRN009": "files have no `training`",
}
"""Rules that report nothing about files, and why."""


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> tuple[Diagnostic, ...]:
    """The findings of all rules about the specs in their examples."""
    folder, facts = tmp_path_factory.mktemp("specs"), load_facts()
    return tuple(
        finding
        for rule in RULES
        for example in rule.bad
        for finding in judge_text(example.spec, folder, facts, example.resolved).findings
    )


def test_every_replaced_phrase_is_one_of_a_rule(findings: tuple[Diagnostic, ...]) -> None:
    texts = {text for finding in findings for text in _texts(finding)}
    unused = [
        pattern.pattern
        for pattern, _ in SPEC_WORDS
        if not any(pattern.search(text) for text in texts)
    ]
    assert unused == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("use ipython<9, or set `isolation: venv`", "use ipython<9, or install the packages into"),
        (
            'set `cuda: "12.6"` (driver 525.60.13 or newer), or use vllm==1',
            "use a build of torch for",
        ),
        ("use `triton ; sys_platform == 'linux'`, or remove a from `platforms`", "use `triton ; "),
    ],
)
def test_words_of_specs_are_replaced(text: str, words: str) -> None:
    assert OF_SPECS.search(text)
    replaced = replace_spec_words(text, "requirements.txt")
    assert replaced.startswith(words)
    assert not OF_SPECS.search(replaced)


def test_no_rule_that_check_shows_speaks_of_a_spec(findings: tuple[Diagnostic, ...]) -> None:
    left = dict[str, set[str]]()
    for finding in filter(_is_at_a_line, findings):
        for text in (finding.message, finding.why, finding.help):
            replaced = replace_spec_words(text, "requirements.txt")
            if OF_SPECS.search(replaced):
                left.setdefault(finding.id, set()).add(replaced)
    assert {name: texts for name, texts in left.items() if name not in NOT_FROM_FILES} == {}
    assert left.keys() == NOT_FROM_FILES.keys()


def _is_at_a_line(finding: Diagnostic) -> bool:
    """Return whether `check` shows the finding of a field that comes from lines of files."""
    where = finding.where
    if not isinstance(where, RouteLocation) or finding.id.startswith(ABOUT_SPECS):
        return False
    return bool(where.route) and where.route[0] in FIELDS


def _texts(finding: Diagnostic) -> tuple[str, ...]:
    title = finding.fix.title if finding.fix is not None else ""
    return finding.message, finding.why, finding.help, title
