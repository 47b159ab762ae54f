"""Rules about Colab: both sides of every threshold, what a resolved set does to a runtime, and what
keeps them silent.
"""

from __future__ import annotations

from datetime import date

import pytest

from provision.diagnostics import Applicability, RouteLocation, Severity
from provision.facts import Facts
from provision.rules import LintContext, ResolvedSet, run_rules
from provision.rules.colab.runtimes import add_months
from tests.rules.conftest import Ask, Judged


def _spec(
    packages: str = "[]",
    target: str = 'runtime: "2026.07"',
    *,
    python: str = "3.12",
    gpu: str = "T4",
    more: str = "",
) -> str:
    return (
        f'gpu: {gpu}\npython: "{python}"\npackages: {packages}\n{more}targets:\n  colab: '
        f"{{kind: colab, {target}}}\n"
    )


def _fixed(judged: Judged, identity: str) -> str:
    fix = judged.one(identity).fix
    assert fix is not None
    (text,) = judged.source.apply_fixes([fix]).values()
    return text


@pytest.mark.parametrize("runtime", ["2026.01", "2026.04", "2026.07"])
def test_every_named_runtime_takes_its_own_python_only(
    ask: Ask, facts: Facts, runtime: str
) -> None:
    for python in ("3.11", "3.12", "3.13"):
        found = ask(_spec(target=f'runtime: "{runtime}"', python=python)).of("IMG020")
        assert bool(found) == (python != facts.runtimes[runtime].minor)


def test_the_runtime_with_that_python_is_offered(ask: Ask) -> None:
    judged = ask(_spec(target="runtime: latest"))
    assert "Colab runtime `latest` has Python 3.13" in judged.one("IMG020").message
    text = _fixed(judged, "IMG020")
    assert 'runtime: "2026.07"' in text
    assert ask(text).ids == []


def test_where_no_runtime_has_that_python_an_environment_is_offered(ask: Ask) -> None:
    judged = ask(_spec(python="3.10"))
    assert "runtime:" not in judged.one("IMG020").help
    text = _fixed(judged, "IMG020")
    assert "isolation: venv" in text
    assert ask(text).ids == []


def test_a_runtime_that_may_be_gone_is_not_offered(ask: Ask) -> None:
    """Python 3.11 is that of 2025.07 only, which came out in August 2025."""
    assert "2025.07" not in ask(_spec(python="3.11")).one("IMG020").help


def test_a_doubtful_python_only_warns(ask: Ask, facts: Facts) -> None:
    doubtful = facts.runtimes["2026.07"]._replace(
        evidence=facts.runtimes["2026.07"].evidence._replace(confidence="low")
    )
    judged = ask(_spec(python="3.11"))
    case = LintContext(
        judged.case.spec,
        judged.source,
        facts.with_tables(runtimes={**facts.runtimes, "2026.07": doubtful}),
    )
    assert [one.severity for one in run_rules(case) if one.id == "IMG020"] == [Severity.WARNING]


@pytest.mark.parametrize(
    ("runtime", "severity", "near"),
    [
        ("2026.05", "error", "2026.04"),
        ("2025.01", "error", "2025.07"),
        ("2026.10", "unknown", "2026.07"),
    ],
)
def test_a_runtime_between_known_ones_is_an_error_and_a_newer_one_unknown(
    ask: Ask, runtime: str, severity: str, near: str
) -> None:
    found = ask(_spec(target=f'runtime: "{runtime}"')).one("IMG021")
    assert found.severity == severity
    assert near in found.message


def test_latest_is_said_only_where_something_else_can_be_named(ask: Ask) -> None:
    assert ask(_spec(python="3.13", target="runtime: latest")).ids == []
    assert ask(_spec(python="3.13", target="runtime: latest, isolation: venv")).ids == ["IMG022"]
    assert ask(_spec(python="3.12", target="runtime: latest")).ids == ["IMG020"]
    assert (
        ask(_spec(python="3.13", target="runtime: latest, isolation: venv, via: colab-cli")).ids
        == []
    )


def test_the_end_of_a_runtime_is_counted_from_the_day_of_the_facts(ask: Ask, facts: Facts) -> None:
    """2026.07 came out on 2026-07-14: it is at notice three months before 2027-07-14, and gone at
    that day.
    """
    judged, lifetime = ask(_spec()), facts.conditions["runtime lifetime"]

    def said(day: str) -> list[str]:
        conditions = {
            **facts.conditions,
            "runtime lifetime": lifetime._replace(evidence=lifetime.evidence._replace(as_of=day)),
        }
        return [
            one.message
            for one in run_rules(
                LintContext(
                    judged.case.spec, judged.source, facts.with_tables(conditions=conditions)
                )
            )
            if one.id == "IMG024"
        ]

    assert said("2027-04-13") == []
    assert "is offered until about 2027-07" in said("2027-04-14")[0]
    assert "is offered until" in said("2027-07-13")[0]
    assert "was probably removed around 2027-07" in said("2027-07-14")[0]


def test_months_are_added_over_the_end_of_a_year() -> None:
    assert add_months(date(2026, 11, 30), 3) == date(2027, 2, 28)
    assert add_months(date(2025, 8, 13), 12) == date(2026, 8, 13)
    assert add_months(date(2026, 1, 31), 11) == date(2026, 12, 28)


@pytest.mark.parametrize(
    ("card", "offered"),
    [
        ("V100", "T4"),
        ("RTX-4090", "L4"),
        ("H200", "RTX-PRO-6000"),
        ("P100", "T4"),
        ("A10", "L4"),
        ("mps", "T4"),
    ],
)
def test_the_smallest_card_that_is_no_weaker_is_offered(ask: Ask, card: str, offered: str) -> None:
    judged = ask(_spec(gpu=card))
    text = _fixed(judged, "IMG025")
    assert f"gpu: {offered}}}" in text
    assert "IMG025" not in ask(text).ids


@pytest.mark.parametrize("card", ["T4", "L4", "A100", "A100-80GB", "H100", "RTX-PRO-6000", "none"])
def test_cards_that_colab_has(ask: Ask, card: str) -> None:
    judged = ask(_spec(gpu=card))
    assert judged.ids == ([] if card in ("T4", "none") else ["IMG027"])


def test_an_unknown_card_is_another_rules(ask: Ask) -> None:
    assert ask(_spec(gpu="Z999")).ids == ["GPU001"]


@pytest.mark.parametrize(
    ("bounds", "ids"),
    [
        (">=9", ["IMG028"]),
        ("==9.*", ["IMG028"]),
        (">=7.34", []),
        ("<8", []),
        (">=8", ["IMG033"]),
        ("==8.30.0", ["IMG033"]),
        (">=8,<10", ["IMG033"]),
    ],
)
def test_ipython_is_deadly_where_nothing_below_nine_is_let_through(
    ask: Ask, bounds: str, ids: list[str]
) -> None:
    assert ask(_spec(f'["ipython{bounds}"]')).ids == ids


def test_what_the_kernel_runs_on_is_refused_one_by_one(ask: Ask) -> None:
    held = {"tornado": "6.6", "ipykernel": "7.1.0", "google-auth": "2.50.0", "traitlets": "5.14.3"}
    judged = ask(_spec("[accelerate]"), ResolvedSet(held, "3.12"))
    assert judged.ids == ["IMG033"] * 3
    assert all(
        found.severity is Severity.ERROR and "isolation: venv" in found.help
        for found in judged.findings
    )
    assert (
        ask(
            _spec("[accelerate]"),
            ResolvedSet(
                {"tornado": "6.5.7", "ipykernel": "6.17.1", "google-auth": "2.49.0"}, "3.12"
            ),
        ).ids
        == []
    )


@pytest.mark.parametrize(
    ("version", "ids"), [("9.0.0", ["IMG028"]), ("8.37.0", ["IMG033"]), ("7.34.0", [])]
)
def test_ipython_in_a_resolved_set(ask: Ask, version: str, ids: list[str]) -> None:
    judged = ask(
        _spec("[ipykernel]"), ResolvedSet({"ipykernel": "6.17.1", "ipython": version}, "3.12")
    )
    assert judged.ids == ids
    if ids:
        assert judged.findings[0].where == RouteLocation(("packages",))
        assert (
            f"packages: [ipykernel, ipython{'<9' if ids == ['IMG028'] else '==7.34.0'}]"
            in _fixed(judged, ids[0])
        )


def test_the_line_that_let_a_version_in_is_pointed_at(ask: Ask) -> None:
    judged = ask(_spec('["ipython>=8"]'), ResolvedSet({"ipython": "9.1.0"}, "3.12"))
    assert judged.at(judged.one("IMG028")) == '"ipython>=8"'


def test_numpy_of_the_runtime_needs_no_restart(ask: Ask) -> None:
    assert ask(_spec('["numpy>=2.0.2"]')).ids == []
    assert ask(_spec('["numpy>2.0.2"]')).ids == ["IMG029"]
    assert ask(_spec('["numpy<2.0.2"]')).ids == ["IMG029"]
    assert ask(_spec("[numpy]"), ResolvedSet({"numpy": "2.0.2"}, "3.12")).ids == []


def test_one_finding_for_all_that_needs_a_restart_in_a_resolved_set(ask: Ask) -> None:
    judged = ask(_spec("[pillow]"), ResolvedSet({"numpy": "2.4.0", "pillow": "12.0.0"}, "3.12"))
    found = judged.one("IMG029")
    assert "numpy 2.4.0 replaces numpy 2.0.2 and pillow 12.0.0" in found.message
    assert judged.at(found) == "pillow"
    text = _fixed(judged, "IMG029")
    assert ask(text, ResolvedSet({"numpy": "2.0.2", "pillow": "11.3.0"}, "3.12")).ids == []


def test_runtimes_differ(ask: Ask) -> None:
    """numpy 2.1.3 is that of latest only."""
    targets = "targets:\n  new: {kind: colab}\n  cli: {kind: colab, via: colab-cli}\n"
    text = 'gpu: T4\npython: "3.13"\npackages: ["numpy>=2.1"]\n' + targets
    assert ask(text).ids == []
    assert ask(_spec('["numpy>=2.1"]')).ids == ["IMG029"]


def test_a_package_for_another_platform_changes_nothing(ask: Ask) -> None:
    assert ask(_spec("""["numpy>=2.2 ; sys_platform == 'darwin'"]""")).ids == []


def test_a_set_of_another_flavour_is_not_that_of_the_target(ask: Ask) -> None:
    """The CPU set of a local target says nothing of a runtime with a card."""
    resolved = ResolvedSet({"numpy": "2.4.0"}, "3.12", "cpu")
    text = _spec("[numpy]").replace("targets:\n", "targets:\n  here: {kind: local, gpu: none}\n")
    assert ask(text, resolved).ids == []
    assert ask(text, resolved._replace(flavour="cu128")).ids == ["IMG029"]


def test_the_pins_of_google_colab_are_one_note(ask: Ask) -> None:
    held = {
        "pandas": "3.0.0",
        "requests": "2.34.0",
        "portpicker": "1.7",
        "ipyparallel": "9.0.1",
        "jupyter-server": "2.17.0",
    }
    found = ask(_spec("[pandas]"), ResolvedSet(held, "3.12")).one("IMG030")
    assert found.severity is Severity.INFO
    assert len(found.message) <= 400
    assert all(name in found.message for name in held)
    assert ask(_spec('["pandas==2.2.2"]')).ids == []


def test_torch_of_the_runtime_is_let_be(ask: Ask) -> None:
    assert ask(_spec("[torch==2.11.0]")).ids == []
    assert ask(_spec("[torch]"), ResolvedSet({"torch": "2.11.0"}, "3.12", "cu128")).ids == []


def test_companions_are_named_where_they_belong_to_the_old_torch(ask: Ask) -> None:
    """torchaudio 2.11.0 names no torch, that of 2026.04 does."""
    assert "torchaudio" not in ask(_spec("[torch==2.13.0]")).one("IMG031").message
    older = ask(_spec("[torch==2.13.0]", 'runtime: "2026.04"')).one("IMG031")
    assert "leaves torchvision 0.25.0+cu128 and torchaudio 2.10.0+cu128 unchanged" in older.message
    assert older.severity is Severity.WARNING


def test_with_its_companions_a_torch_costs_only_the_download(ask: Ask) -> None:
    judged = ask(_spec("[torch==2.13.0]"))
    text = _fixed(judged, "IMG031")
    again = ask(text).one("IMG031")
    assert again.severity is Severity.INFO
    assert again.fix is None


def test_an_older_torch_is_called_older_and_its_runtime_named(ask: Ask) -> None:
    found = ask(_spec("[torch==2.10.0, torchvision, torchaudio]")).one("IMG031")
    assert "torch==2.10.0 (older)" in found.message
    assert '"2026.04"' in found.help


@pytest.mark.parametrize(
    ("cuda", "severity"), [("12.6", Severity.INFO), ("13.0", Severity.WARNING)]
)
def test_companions_break_on_another_cuda_major(ask: Ask, cuda: str, severity: Severity) -> None:
    assert (
        ask(_spec("[torch==2.11.0]", more=f'cuda: "{cuda}"\n')).one("IMG031").severity is severity
    )


def test_the_image_without_a_card_has_the_cpu_build(ask: Ask) -> None:
    assert ask(_spec("[torch==2.11.0]", gpu="none")).ids == []
    assert (
        ask(_spec("[torch]", gpu="none"), ResolvedSet({"torch": "2.11.0"}, "3.12", "cpu")).ids == []
    )


@pytest.mark.parametrize("runtime", ["2026.01", "2026.04", "2026.07"])
def test_the_runtimes_own_versions_lint_clean(ask: Ask, facts: Facts, runtime: str) -> None:
    row = facts.runtimes[runtime]
    packages = (
        f'[torch=={row.torch}, numpy=={row.numpy}, "transformers[torch]=={row.transformers}", '
        "pandas]"
    )
    errors = [
        one for one in ask(_spec(packages, f'runtime: "{runtime}"')).findings if one.id != "IMG024"
    ]
    assert errors == []


def test_nothing_is_fixed_without_being_asked(ask: Ask) -> None:
    """What a person meant by a runtime, a card or a bound is theirs to say."""
    text = (
        'gpu: V100:2\npython: "3.11"\npackages: [numpy==1.26.4, ipython>=9, '
        "torch==2.13.0]\ntargets:\n  a: {kind: colab}\n  b: {kind: colab, gpu: T4}\n"
    )
    fixes = [one.fix for one in ask(text).findings if one.id.startswith("IMG") and one.fix]
    assert fixes
    assert {fix.applicability for fix in fixes} == {Applicability.UNSAFE}
