"""The engine: order, our own faults, harmless text, and what happens tomorrow or with anything that
is a valid spec.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError, field_serializer

from provision.diagnostics import Diagnostic, Route, RouteLocation, Severity
from provision.facts import Facts, load_facts
from provision.rules import RULES, LintContext, ResolvedSet, run_rules
from provision.spec import Spec
from provision.suggest.search import find_suggestions
from tests.rules.conftest import Ask

PLAIN = 'gpu: none\npython: "3.11"\npackages: [sklearn, numpy, numpy]\n'
FACTS = load_facts()


class Said:
    """The text of a spec that was never written: data stands for its author's words."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data

    def text(self, route: Route) -> str | None:
        value: Any = self.data
        for part in route:
            try:
                value = value[part]
            except (KeyError, IndexError, TypeError):
                return None
        return value if isinstance(value, str) else None

    def is_plain(self, route: Route) -> bool:
        return self.text(route) is not None


def test_a_rule_that_fails_is_a_finding_and_stops_no_other(ask: Ask) -> None:
    secret = "hunter2-hunter2"

    def fails(case: LintContext) -> Iterator[Diagnostic]:
        raise KeyError(secret)

    broken = RULES[0]._replace(check=fails)
    found = run_rules(ask(PLAIN).case, (broken, *RULES[1:]))
    assert [finding.id for finding in found] == ["BUG000", "PKG006", "PKG004"]
    assert found[0].severity is Severity.ERROR
    assert f"{broken.id} {broken.name} failed with KeyError" in found[0].message
    assert secret not in str(found[0])


def test_findings_before_a_failure_in_the_same_rule_are_not_half_shown(ask: Ask) -> None:
    def halfway(case: LintContext) -> Iterator[Diagnostic]:
        yield RULES[0].diagnostic("one", (), why="w.", help="h")
        raise ValueError

    assert [
        finding.id for finding in run_rules(ask(PLAIN).case, (RULES[0]._replace(check=halfway),))
    ] == ["BUG000"]


def test_a_signal_that_a_library_turns_into_an_error_is_no_finding(ask: Ask) -> None:
    class Settings(BaseModel):
        value: int = 1

        @field_serializer("value")
        def _interrupted(self, value: int) -> int:
            raise KeyboardInterrupt

    def dumps(case: LintContext) -> Iterator[Diagnostic]:
        yield from Settings().model_dump()

    with pytest.raises(KeyboardInterrupt):
        run_rules(ask(PLAIN).case, (RULES[0]._replace(check=dumps),))


def test_findings_stand_in_the_order_of_their_routes(ask: Ask) -> None:
    packages = ", ".join(["sklearn"] + ["numpy"] * 12)
    found = run_rules(ask(f'gpu: none\npython: "3.11"\npackages: [{packages}]\n').case)
    assert [
        finding.where.route[1] for finding in found if isinstance(finding.where, RouteLocation)
    ] == [0, *range(2, 13)]


def test_text_of_findings_is_harmless(ask: Ask) -> None:
    judged = ask(
        'gpu: none\npython: "3.11"\npackages: []\npaths: {data: "rel\\u202eative\\n::error::x"}\n'
    )
    found = judged.one("REF101")
    assert "\u202e" not in found.message
    assert "\n" not in found.message
    named = ask(
        'gpu: none\npython: "3.11"\npackages: []\nindexes: {pypi: {url: '
        '"https://packages.example.com/\\u202e"}}\n'
    ).one("SEC002")
    assert "\\u202e" in named.message
    assert "\u202e" not in named.message


def test_long_text_is_cut(ask: Ask) -> None:
    found = ask(f'gpu: none\npython: "3.11"\npackages: []\npaths: {{data: {"a" * 9000}}}\n').one(
        "REF101"
    )
    assert len(found.message) == 400
    assert found.message.endswith("…")


def test_a_finding_is_shown_once(ask: Ask) -> None:
    case = ask(PLAIN).case
    assert run_rules(case, RULES + RULES) == run_rules(case, RULES)


def test_secrets_are_never_shown(ask: Ask) -> None:
    value = "hf_canarycanarycanarycanarycanary"
    judged = ask(
        f'gpu: none\npython: "3.11"\npackages: [{{name: a-lib, index: x}}]\nenv: '
        f"{{HF_TOKEN: {value}}}\npaths: {{data: {value}}}\n"
        f'indexes: {{x: {{url: "https://packages.example.com/{value}/simple"}}, pypi: '
        f'{{url: "https://packages.example.com/{value}"}}}}\n'
        f"training: {{arguments: {{nested: {{list: [{value}]}}}}}}\n"
    )
    assert judged.ids.count("SEC001") == 5
    assert "REF101" in judged.ids
    assert "SEC002" in judged.ids
    assert value not in str(judged.findings)


@pytest.mark.parametrize(
    "name_and_value",
    [
        ("HF_TOKEN", "some-long-value"),
        ("DB_PASSWORD", "correct horse"),
        ("hubToken", "abcdefgh1"),
        ("STORAGE_ACCOUNT_KEY", "abcdefgh"),
        ("X_KEY", "a1b2c3d4e5f6a7b8c9d0"),
    ],
)
def test_names_that_say_secret(ask: Ask, name_and_value: tuple[str, str]) -> None:
    name, value = name_and_value
    assert ask(f'gpu: none\npython: "3.11"\npackages: []\nenv: {{{name}: "{value}"}}\n').ids == [
        "SEC001"
    ]


@pytest.mark.parametrize(
    "name_and_value",
    [
        ("HF_TOKEN", "short"),
        ("HF_TOKEN", "${HF_TOKEN}"),
        ("API_KEY", "changeme-please"),
        ("API_KEY", "placeholder-1"),
        ("SECRET", "/run/secrets/x"),
        ("SORT_KEY", "created-at"),
        ("TOKENIZERS", "parallelism"),
    ],
)
def test_names_and_values_that_are_let_be(ask: Ask, name_and_value: tuple[str, str]) -> None:
    name, value = name_and_value
    assert ask(f'gpu: none\npython: "3.11"\npackages: []\nenv: {{{name}: "{value}"}}\n').ids == []


TOMORROW = [
    (
        'gpu: L4\ncuda: "14.2"\npython: "3.19"\npackages: [torch==99.0, torchvision==99.0, '
        '"transformers[torch]==99.0", accelerate==99.0]\n'
    ),
    (
        'gpu: X1000\npython: "3.19"\npackages: [torch>=99, transformers>=99, '
        "accelerate]\ntraining: {precision: fp8}\n"
    ),
    'gpu: none\npython: "3.19"\npackages: [torch, transformers==99.0]\n',
    'gpu: L4\ncuda: "14.2"\npython: "3.19"\npackages: [torch, transformers, accelerate]\n',
]


@pytest.mark.parametrize("text", TOMORROW)
@pytest.mark.parametrize(
    "resolved",
    [
        None,
        ResolvedSet(
            {"torch": "99.0+cu142", "transformers": "99.0", "accelerate": "99.0"}, "3.19", "cu142"
        ),
    ],
)
def test_tomorrows_releases_are_no_errors(
    ask: Ask, text: str, resolved: ResolvedSet | None
) -> None:
    found = ask(text, resolved).findings
    assert not [finding for finding in found if finding.severity is Severity.ERROR]
    assert any(finding.severity is Severity.UNKNOWN for finding in found)


def test_a_new_transformers_without_accelerate_is_unknown_and_mended(ask: Ask) -> None:
    found = ask('gpu: none\npython: "3.11"\npackages: [torch, transformers==99.0]\n').one("PKG001")
    assert found.severity is Severity.UNKNOWN
    assert found.fix is not None


_NAMES = st.sampled_from(
    [
        "torch",
        "Torch",
        "torchvision",
        "transformers",
        "accelerate",
        "sklearn",
        "numpy",
        "nunpy",
        "trasnfomers",
        "pstuil",
        "x",
        "a-b_c",
    ]
)
_VERSIONS = st.sampled_from(
    [
        "",
        "==2.13.0",
        ">=2",
        "<1",
        "==2.0.1+cu118",
        "==2.1.*",
        "~=5.13",
        "!=2.0.*",
        "===odd",
        ">=3,<2",
        "==1!2.0",
        "==99.0",
        "==5.0.0rc1",
        ">2.13.0.post1",
    ]
)
_EXTRAS = st.sampled_from([[], ["torch"], ["Deep_Speed", "x"]])
_PACKAGE = st.one_of(
    st.tuples(_NAMES, _VERSIONS).map("".join),
    st.fixed_dictionaries(
        {"name": _NAMES},
        optional={
            "version": _VERSIONS,
            "extras": _EXTRAS,
            "index": st.sampled_from(["a", "pypi", "zz"]),
            "source": st.sampled_from(["pypi", "conda"]),
        },
    ),
)
_GPU = st.sampled_from(
    [
        "none",
        "mps",
        "L4",
        "T4:2",
        "A100",
        "Z999",
        "x y",
        {"type": "H100", "count": 8},
        {"type": "none"},
    ]
)
_CUDA = st.sampled_from(["auto", "none", "12.8", "11.8", "99.9"])
_PATHS = st.dictionaries(
    st.sampled_from(["data", "out"]),
    st.sampled_from(["/a", "a", "~", "", "C:\\x", "\u202e"]),
    max_size=2,
)
_TARGET = st.fixed_dictionaries(
    {"kind": st.sampled_from(["local", "colab"])},
    optional={"gpu": _GPU, "cuda": _CUDA, "paths": _PATHS},
)
_VALUE = st.recursive(
    st.one_of(st.text(max_size=30), st.integers(), st.booleans(), st.none()),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=5,
)
_SPECS = st.fixed_dictionaries(
    {
        "gpu": _GPU,
        "python": st.sampled_from(["3.9", "3.11", "3.15", "3.99"]),
        "packages": st.lists(_PACKAGE, max_size=6),
    },
    optional={
        "cuda": _CUDA,
        "paths": _PATHS,
        "platforms": st.sampled_from([["linux-x86_64"], ["linux-aarch64", "windows-x86_64"]]),
        "env": st.dictionaries(
            st.sampled_from(["HF_TOKEN", "A", "MY_KEY"]),
            st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40),
            max_size=2,
        ),
        "secrets": st.sampled_from(
            [
                {"S": {"env": "X"}},
                {"S": {"colab": "X"}},
                {"S": {"secret": "projects/p/secrets/s/versions/1"}},
            ]
        ),
        "indexes": st.dictionaries(
            st.sampled_from(["a", "pypi"]),
            st.sampled_from(
                [{"url": "https://h/s"}, {"url": "https://[::1/x"}, {"url": "file:///x"}]
            ),
            max_size=2,
        ),
        "targets": st.dictionaries(
            st.sampled_from(["here", "there"]), _TARGET, min_size=1, max_size=2
        ),
        "training": st.fixed_dictionaries(
            {},
            optional={
                "precision": st.sampled_from(["fp32", "tf32", "fp16", "bf16", "fp8"]),
                "framework": st.sampled_from(["hf-trainer", "torch", "none"]),
                "method": st.sampled_from(["full", "inference"]),
                "arguments": st.dictionaries(
                    st.sampled_from(["hub_token", "use_cpu", "k"]), _VALUE, max_size=2
                ),
            },
        ),
    },
)
_RESOLVED = st.none() | st.builds(
    ResolvedSet,
    st.dictionaries(
        st.sampled_from(["torch", "transformers", "accelerate", "numpy"]),
        st.sampled_from(["2.13.0+cpu", "5.23.0", "0.19.0", "99.0", "4.28.1", "1.0.dev0"]),
    ),
    st.sampled_from(["3.11", "3.99"]),
    st.sampled_from([None, "cpu", "cu128"]),
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(_SPECS, _RESOLVED)
def test_no_rule_fails_on_a_valid_spec(data: dict[str, Any], resolved: ResolvedSet | None) -> None:
    try:
        spec = Spec.model_validate(data)
    except ValidationError:
        return
    found = run_rules(LintContext(spec, Said(data), FACTS, resolved))
    assert "BUG000" not in {finding.id for finding in found}
    assert run_rules(LintContext(spec, Said(data), FACTS, resolved)) == found


@pytest.mark.thorough
@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(_SPECS)
def test_a_search_never_fails_on_a_valid_spec(data: dict[str, Any]) -> None:
    try:
        spec = Spec.model_validate(data)
    except ValidationError:
        return
    for one in find_suggestions(spec, FACTS, most=1).suggestions:
        assert Spec.model_validate(one.spec.model_dump()) == one.spec


def test_facts_may_be_few(ask: Ask, facts: Facts) -> None:
    """Rules answer with what the facts hold; a table with a single row is still a table."""
    few = facts.with_tables(
        torch=facts.torch[-1:],
        transformers=facts.transformers[-1:],
        cards=(),
        replaced={},
        popular=frozenset(),
    )
    case = ask(
        'gpu: L4\ncuda: "12.8"\npython: "3.11"\npackages: [torch==2.11.0, '
        "transformers==5.13.1, sklearn]\n"
    ).case
    found = run_rules(dataclasses.replace(case, facts=few))
    assert {finding.id for finding in found} == {"GPU001", "PKG003"}
    assert all(finding.severity is Severity.UNKNOWN for finding in found)
