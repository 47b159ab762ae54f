"""Cards, drivers, CUDA builds and toolkits: thresholds on both sides, what is unknown, and the way
out that is computed.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from provision.diagnostics import Applicability, RouteLocation, Severity
from provision.facts import Facts
from provision.rules import LintContext, ResolvedSet, run_rules
from provision.rules.examples import EXAMPLE_TARGET
from tests.rules.conftest import Ask, Judged

OLD = "pytorch-2-7-cu128-ubuntu-2404-nvidia-570"


def _spec(gpu: str, cuda: str, torch: str, more: str = "") -> str:
    said = f'cuda: "{cuda}"\n' if cuda else ""
    return f'gpu: {gpu}\n{said}python: "3.12"\npackages: ["torch{torch}"]\n{more}'


def _workbench(image: str, more: str = "") -> str:
    return f"targets:\n  wb: {{{EXAMPLE_TARGET}, image: {image}{more}}}\n"


def _with(judged: Judged, facts: Facts) -> tuple[str, ...]:
    findings = run_rules(
        LintContext(judged.case.spec, judged.case.source, facts, judged.case.resolved)
    )
    return tuple(finding.id for finding in findings if finding.id[:3] in ("CUD", "GPU"))


@pytest.mark.parametrize(
    ("gpu", "cuda", "torch", "severity"),
    [
        ("V100", "13.0", "==2.11.0", Severity.ERROR),
        (
            "V100",
            "13.0",
            "",
            Severity.ERROR,
        ),  # a compiler without the card makes no code for it, whatever torch comes
        ("V100", "12.8", ">=2.11", Severity.ERROR),  # no newer torch is built for 12.8
        ("V100", "12.8", ">=2.10", None),
        ("V100", "12.9", "==2.9.1", None),
        ("RTX-5090", "12.6", "", Severity.ERROR),
        ("T4", "13.0", "", None),
        ("RTX-4090", "13.2", "==2.15.0", None),  # 8.9 runs the code for 8.6
        ("B300", "13.0", "==2.13.0", None),  # 10.3 runs the code for 10.0
        ("Z999", "13.0", "", None),
        ("V100", "13.0", ">=2.16", None),  # newer than the facts
    ],
)
def test_code_for_the_card(
    ask: Ask, gpu: str, cuda: str, torch: str, severity: Severity | None
) -> None:
    assert [finding.severity for finding in ask(_spec(gpu, cuda, torch)).of("GPU005")] == (
        [severity] if severity else []
    )


@pytest.mark.parametrize(
    ("gpu", "python", "tensorflow", "severity"),
    [
        ("RTX-5090", "3.12", "==2.16.*", Severity.WARNING),
        ("RTX-5090", "3.12", "==2.21.*", Severity.WARNING),
        ("RTX-5090", "3.12", "", Severity.WARNING),
        ("RTX-5090", "3.11", ">=2.12", Severity.WARNING),  # the newest is installed
        ("RTX-5090", "3.11", "==2.15.*", Severity.INFO),  # no report of such a release
        ("B200", "3.12", "==2.21.*", Severity.INFO),  # no report of such a card
        ("H100", "3.12", "==2.15.*", None),
        ("K80", "3.12", "==2.21.*", Severity.ERROR),
        ("L4", "3.12", "==2.21.*", None),
    ],
)
def test_tensorflow_for_the_card(
    ask: Ask, gpu: str, python: str, tensorflow: str, severity: Severity | None
) -> None:
    spec = f'gpu: {gpu}\npython: "{python}"\npackages: ["tensorflow[and-cuda]{tensorflow}"]\n'
    assert [finding.severity for finding in ask(spec).of("GPU013")] == (
        [severity] if severity else []
    )


def test_a_card_that_the_driver_cannot_compile_for_has_the_reports_as_source(ask: Ask) -> None:
    finding = ask('gpu: RTX-5080\npython: "3.12"\npackages: ["tensorflow[and-cuda]"]\n').one(
        "GPU013"
    )
    assert "CUDA_ERROR_INVALID_PTX" in finding.why
    assert "jax or torch backend" in finding.help
    assert finding.source.startswith("tensorflow/tensorflow#101746")


def test_a_card_that_newer_torch_may_know_is_unknown(ask: Ask, facts: Facts) -> None:
    """Were the newest CUDA able to make code for a card that no build has, only a bound could make
    that an error.
    """
    judged, bounded = (
        ask(_spec("Jetson-AGX-Orin", "13.2", "")),
        ask(_spec("Jetson-AGX-Orin", "13.2", "==2.15.0")),
    )
    assert [finding.severity for finding in judged.of("GPU005")] == [Severity.UNKNOWN]
    assert [finding.severity for finding in bounded.of("GPU005")] == [Severity.ERROR]


def test_the_best_build_comes_first(ask: Ask) -> None:
    newer = ask(_spec("RTX-5090", "12.4", ">=2.6")).one("GPU005")
    assert newer.help.startswith('set `cuda: "12.8"` (with torch 2.11.0)')
    assert newer.fix is not None
    assert newer.fix.applicability is Applicability.UNSAFE
    older = ask(_spec("V100", "13.0", ">=2.8")).one("GPU005")
    assert older.help == (
        'set `cuda: "12.6"` (with torch 2.14.1), or set `cuda: "12.8"` (with torch 2.10.0), '
        "or use a different GPU"
    )


def test_without_an_admitted_build_the_nearest_torch_is_named(ask: Ask) -> None:
    assert (
        "use torch 2.7.0 for CUDA 12.8"
        in ask(_spec("RTX-5090", "12.4", "==2.6.0")).one("GPU005").help
    )
    assert (
        "use torch 2.14.1 for CUDA 12.6"
        in ask(_spec("V100", "13.2", "==2.15.0")).one("GPU005").help
    )
    assert (
        "which requires Python 3.9 to 3.13"
        in ask(_spec("K80", "", ">=2.8").replace("3.12", "3.14")).one("GPU005").help
    )


def test_builds_that_nobody_read_are_unknown(ask: Ask) -> None:
    arm = "platforms: [linux-aarch64]\n"
    assert (
        ask(_spec("RTX-4090", "12.6", "==2.10.0", arm)).one("GPU005").severity is Severity.UNKNOWN
    )
    assert ask(_spec("RTX-4090", "13.0", "==2.11.0", arm)).of("GPU005") == []


def test_a_doubtful_build_may_warn_only(ask: Ask, facts: Facts) -> None:
    judged = ask(_spec("V100", "13.0", "==2.11.0"))
    row = facts.builds["2.11.0:cu130:linux-x86_64"]
    doubtful = facts.with_tables(
        builds={
            **facts.builds,
            "2.11.0:cu130:linux-x86_64": row._replace(
                evidence=row.evidence._replace(confidence="low")
            ),
        }
    )
    found = [
        finding
        for finding in run_rules(replace(judged.case, facts=doubtful))
        if finding.id == "GPU005"
    ]
    assert [finding.severity for finding in found] == [Severity.WARNING]


def test_ptx_alone_is_a_note_and_needs_a_driver(ask: Ask, facts: Facts) -> None:
    row = facts.builds["2.11.0:cu128:linux-x86_64"]
    only = facts.with_tables(
        builds={**facts.builds, "2.11.0:cu128:linux-x86_64": row._replace(sm=("8.0",), ptx="7.0")}
    )
    text = _spec("V100", "12.8", "==2.11.0")
    (found,) = (
        finding
        for finding in run_rules(replace(ask(text).case, facts=only))
        if finding.id == "GPU005"
    )
    assert found.severity is Severity.INFO
    legacy = text + _workbench(OLD)
    assert _with(ask(legacy), only) == ("GPU005",)  # branch 570 brings CUDA 12.8
    older = only.with_tables(images={**facts.images, OLD: facts.images[OLD]._replace(driver="565")})
    assert "CUD004" in _with(ask(legacy), older)


def test_a_resolved_set_is_asked_of_the_places_that_take_it(ask: Ask) -> None:
    two = (
        _spec("V100", "12.6", "")
        + "targets:\n  a: {kind: local}\n  b: {kind: local, gpu: L4, cuda: '13.0'}\n"
    )
    assert ask(two, ResolvedSet({"torch": "2.14.1"}, "3.12", "cu130")).ids == []
    found = ask(two, ResolvedSet({"torch": "2.14.1"}, "3.12", "cu126")).ids
    assert found == []
    assert ask(_spec("V100", "", ""), ResolvedSet({"torch": "2.15.0"}, "3.12", "cu132")).ids == [
        "GPU005"
    ]
    assert (
        ask(_spec("V100", "", ""), ResolvedSet({"torch": "2.15.0"}, "3.12", "cpu")).of("GPU005")
        == []
    )


def test_a_resolved_torch_is_bounded_where_it_was_let_in(ask: Ask) -> None:
    judged = ask(_spec("V100", "12.8", ">=2.9"), ResolvedSet({"torch": "2.11.0"}, "3.12", "cu128"))
    found = judged.one("GPU005")
    assert (found.where, found.severity) == (RouteLocation(("packages", 0)), Severity.ERROR)
    assert found.fix is not None
    (text,) = judged.source.apply_fixes([found.fix]).values()
    assert 'packages: ["torch>=2.9,<2.11.0"]' in text
    pinned = ask(
        _spec("V100", "12.8", ">=2.11"), ResolvedSet({"torch": "2.11.0"}, "3.12", "cu128")
    ).one("GPU005")
    assert pinned.where == RouteLocation(("cuda",))


def test_torch_that_another_package_brings_is_looked_at(ask: Ask) -> None:
    text = 'gpu: V100\ncuda: "13.0"\npython: "3.12"\npackages: ["transformers[torch]"]\n'
    assert ask(text).one("GPU005").where == RouteLocation(("cuda",))
    assert ask(text.replace('"transformers[torch]"', "numpy")).of("GPU005") == []


@pytest.mark.parametrize(("cuda", "ids"), [("13.0", ["CUD004"]), ("12.9", []), ("12.8", [])])
def test_the_driver_of_an_image_on_both_sides(ask: Ask, cuda: str, ids: list[str]) -> None:
    assert ask(_spec("T4", cuda, "==2.11.0", _workbench(OLD))).area("CUD", "GPU") == ids


def test_an_image_with_a_day_has_the_driver_of_that_day(ask: Ask, facts: Facts) -> None:
    first = facts.image_drivers[0]
    assert (first.family, first.since, first.driver) == (
        "workbench-instances-2603",
        "20260330",
        "580.65.06",
    )
    old = facts.with_tables(
        image_drivers=(first._replace(driver="570.124.06"), *facts.image_drivers[1:])
    )
    text = _spec("T4", "13.0", "==2.11.0", _workbench("workbench-instances-2603-20260401-0000-rc0"))
    assert ask(text).area("CUD", "GPU") == []
    assert _with(ask(text), old) == ("CUD004",)
    assert _with(ask(text.replace("20260401", "20260810")), old) == ()


def test_a_c_library_that_is_too_old(ask: Ask, facts: Facts) -> None:
    old = facts.with_tables(
        systems={
            **facts.systems,
            "Ubuntu 24.04": facts.systems["Ubuntu 24.04"]._replace(glibc="2.27"),
        }
    )
    text = _spec("T4", "12.6", "==2.7.0", _workbench("common-cu129-ubuntu-2404-nvidia-580"))
    assert ask(text).area("CUD", "GPU") == []
    assert _with(ask(text), old) == ("CUD004",)
    assert _with(ask(text.replace("2.7.0", "2.6.0")), old) == ()


@pytest.mark.parametrize(
    ("gpu", "driver", "ids"),
    [
        ("V100", ">=590", ["CUD005"]),
        ("V100", ">=581", ["CUD005"]),
        ("V100", ">580.999", []),
        ("V100", ">=580", []),
        ("T4", ">=590", []),
        ("K80", ">=471", ["CUD005"]),
        ("K80", ">=470", []),
        ("RTX-5090", "<570", ["CUD005"]),
        ("RTX-5090", "<571", []),
        ("Z999", ">=590", []),
    ],
)
def test_drivers_on_both_sides_of_what_a_card_has(
    ask: Ask, gpu: str, driver: str, ids: list[str]
) -> None:
    judged = ask(_spec(gpu, "", "", f'requires: {{driver: "{driver}"}}\n'))
    assert [identity for identity in judged.ids if identity == "CUD005"] == ids


@pytest.mark.parametrize(
    ("cuda", "driver", "severity"),
    [
        ("13.0", ">=579", Severity.WARNING),
        ("13.0", ">=580", None),
        ("13.0", ">=580.65.05", Severity.WARNING),
        ("13.0", ">=580.65.06", None),
        ("13.0", "<580", Severity.ERROR),
        ("13.0", "<600", None),
        ("12.8", ">=525", None),
        ("12.8", "==524.*", Severity.ERROR),
        ("11.8", ">=450.80.01", Severity.WARNING),
        ("11.8", ">=450.80.02", None),
    ],
)
def test_required_drivers_on_both_sides_of_the_floor(
    ask: Ask, cuda: str, driver: str, severity: Severity | None
) -> None:
    torch = "==2.6.0" if cuda == "11.8" else "==2.11.0"
    found = ask(_spec("A100", cuda, torch, f'requires: {{driver: "{driver}"}}\n')).of("CUD007")
    assert [finding.severity for finding in found] == ([severity] if severity else [])


def test_the_driver_of_windows_is_named_for_wsl2(ask: Ask, facts: Facts) -> None:
    floor = facts.toolkits["12.8"].floor_windows
    assert floor == "528.33"
    assert (
        f"WSL2 uses the Windows driver: {floor}"
        in ask(_spec("L4", "12.8", "==2.11.0", 'requires: {driver: ">=500"}\n')).one("CUD007").help
    )


def test_a_needed_driver_may_be_said_at_a_target(ask: Ask) -> None:
    text = _spec(
        "T4",
        "12.6",
        "==2.11.0",
        "requires: {driver: '>=590'}\ntargets:\n  colab: {kind: colab, runtime: '2026.07', "
        "requires: {driver: '>=580'}}\n",
    )
    assert "CUD006" not in ask(text).ids
    assert ask(text.replace(">=580", ">=580.82.08")).one("CUD006").where == RouteLocation(
        ("targets", "colab", "requires", "driver")
    )
    assert "CUD006" not in ask(text.replace(">=580", "==580.82.07")).ids


@pytest.mark.parametrize(
    ("image", "cuda", "ids"),
    [
        ("workbench-instances", "12.8", []),
        ("workbench-instances", "13.0", ["CUD008"]),
        ("some-family", "13.0", []),
    ],
)
def test_a_driver_that_was_not_published(ask: Ask, image: str, cuda: str, ids: list[str]) -> None:
    found = ask(_spec("T4", cuda, "==2.11.0", _workbench(image)))
    assert [identity for identity in found.ids if identity == "CUD008"] == ids
    assert all(
        "nvidia-smi --query-gpu=driver_version --format=csv" in finding.help
        for finding in found.of("CUD008")
    )


def test_the_default_build_is_that_of_the_newest_torch_with_a_wheel(ask: Ask) -> None:
    """Python 3.10 has no torch 2.15, whose default is CUDA 13.2; the default of 2.14.1 is 13.0."""
    assert (
        "torch 2.14.1 is for CUDA 13.0"
        in ask(_spec("V100", "", "").replace("3.12", "3.10")).one("CUD009").message
    )
    assert ask(_spec("V100", "", ">=2.8,<2.11")).ids == []
    judged = ask(_spec("V100", "", ""))
    fix = judged.one("CUD009").fix
    assert fix is not None
    (text,) = judged.source.apply_fixes([fix]).values()
    assert ask(text).ids == []


@pytest.mark.parametrize(
    ("gpu", "platforms", "severity"),
    [
        ("L4", "[linux-x86_64]", None),
        ("L4", "[linux-x86_64, linux-aarch64]", None),
        ("L4", "[linux-x86_64, macos-arm64]", Severity.INFO),
        ("L4", "[linux-x86_64, windows-x86_64]", Severity.UNKNOWN),
        ("L4", "[windows-x86_64]", Severity.UNKNOWN),
        ("L4", "[macos-arm64]", Severity.ERROR),
        ("mps", "[linux-x86_64]", Severity.ERROR),
        ("mps", "[macos-arm64, linux-x86_64]", None),
        ("none", "[windows-x86_64, macos-arm64]", None),
        ("GB10", "[linux-x86_64]", Severity.ERROR),
        ("GB10", "[linux-x86_64, linux-aarch64]", None),
    ],
)
def test_platforms_of_accelerators(
    ask: Ask, gpu: str, platforms: str, severity: Severity | None
) -> None:
    found = ask(_spec(gpu, "", "==2.11.0", f"platforms: {platforms}\n")).of("CUD010")
    assert [finding.severity for finding in found] == ([severity] if severity else [])


def test_platforms_are_those_of_local_targets(ask: Ask) -> None:
    assert (
        ask(
            _spec("T4", "", "", "platforms: [windows-x86_64]\ntargets: {colab: {kind: colab}}\n")
        ).of("CUD010")
        == []
    )
    assert (
        ask(_spec("mps", "", "", "platforms: [macos-arm64]\ntargets: {colab: {kind: colab}}\n"))
        .one("CUD010")
        .severity
        is Severity.ERROR
    )


@pytest.mark.parametrize(
    ("toolkit", "package", "ids"),
    [
        ("12.8", "{name: flash-attn, build: true}", []),
        (
            "12.6",
            "{name: flash-attn, build: true}",
            [],
        ),  # another minor version of the same major is only noted by torch
        ("13.0", "{name: mamba-ssm, build: true}", ["CUD013"]),
        # A prebuilt wheel of flash-attn fits torch 2.8.0. pesq and jieba are built without nvcc.
        ("13.0", "{name: flash-attn, version: ==2.8.3, build: true}", []),
        ("13.0", "{name: pesq, build: true}", ["CUD012"]),
        ("13.0", "{name: jieba, build: true}", ["CUD012"]),
        ("13.0", "numpy", ["CUD012"]),
        ("12.7", "{name: flash-attn, build: true}", ["CUD016"]),
        ("99.0", "{name: our-kernels, build: true}", ["CUD013", "CUD016"]),
    ],
)
def test_toolkits(ask: Ask, toolkit: str, package: str, ids: list[str]) -> None:
    text = (
        f'gpu: A100\ncuda: "12.8"\ncuda_toolkit: "{toolkit}"\npython: "3.12"\npackages: '
        f"[torch==2.8.0, {package}]\n"
    )
    assert [identity for identity in ask(text).ids if identity.startswith("CUD01")] == ids


def test_what_is_not_known_to_use_torch_is_a_warning(ask: Ask) -> None:
    text = (
        'gpu: A100\ncuda: "12.8"\ncuda_toolkit: "13.0"\npython: "3.12"\npackages: '
        "[torch==2.8.0, {name: our-kernels, build: true}]\n"
    )
    assert ask(text).one("CUD013").severity is Severity.WARNING
    assert ask(text.replace("our-kernels", "mamba-ssm")).one("CUD013").severity is Severity.ERROR


@pytest.mark.parametrize(
    ("image", "toolkit", "found"),
    [
        ("workbench-instances-2603", "12.0", 0),
        ("common-cu129-ubuntu-2404-nvidia-580", "12.3", 1),
        ("unheard-of", "11.8", 0),
    ],
)
def test_gcc_of_the_system_on_both_sides(ask: Ask, image: str, toolkit: str, found: int) -> None:
    """Debian 12 has gcc 12, Ubuntu 24.04 gcc 13; CUDA 12.0 to 12.3 take gcc 12."""
    text = _spec("T4", "", "==2.6.0", f'cuda_toolkit: "{toolkit}"\n' + _workbench(image)).replace(
        "packages: [", "packages: [{name: k, build: true}, "
    )
    assert len(ask(text).of("CUD014")) == found


@pytest.mark.parametrize(
    ("gpu", "toolkit", "severity"),
    [
        ("V100", "12.9", None),
        ("V100", "13.0", Severity.ERROR),
        ("T4", "13.0", None),
        ("RTX-4090", "11.7", None),  # 8.9 runs the code for 8.6
        ("H100", "11.7", Severity.WARNING),
        ("H100", "11.8", None),
        ("B200", "12.6", Severity.WARNING),
        ("B200", "12.8", None),
        ("B200", "11.2", Severity.WARNING),  # its capabilities were not read one by one
        ("A10", "11.2", None),
    ],
)
def test_cards_on_both_sides_of_a_toolkit(
    ask: Ask, gpu: str, toolkit: str, severity: Severity | None
) -> None:
    text = _spec(gpu, "", "", f'cuda_toolkit: "{toolkit}"\n').replace(
        "packages: [", "packages: [{name: k, build: true}, "
    )
    assert [finding.severity for finding in ask(text).of("CUD015")] == (
        [severity] if severity else []
    )


@pytest.mark.parametrize(
    ("version", "found"),
    [("==9.10.2.21", 0), ("==9.11.0.98", 1), (">=9.5", 0), (">=9.11", 1), ("<10", 0)],
)
def test_cudnn_on_both_sides(ask: Ask, version: str, found: int) -> None:
    text = (
        'gpu: V100\ncuda: "12.6"\npython: "3.12"\npackages: [torch==2.10.0, '
        '"nvidia-cudnn-cu12{}"]\n'
    )
    assert len(ask(text.format(version)).of("CUD017")) == found


@pytest.mark.parametrize(
    ("gpu", "severity"),
    [
        ("V100", None),
        ("T4", None),
        ("P100", Severity.INFO),
        ("P40", Severity.WARNING),
        ("K80", Severity.WARNING),
        ("GTX-1650", Severity.WARNING),
    ],
)
def test_fp16_by_card(ask: Ask, gpu: str, severity: Severity | None) -> None:
    found = ask(_spec(gpu, "", "", "training: {precision: fp16}\n")).of("GPU006")
    assert [finding.severity for finding in found] == ([severity] if severity else [])


def test_tf32_is_said_once_to_trainer(ask: Ask) -> None:
    judged = ask(
        'gpu: A100\npython: "3.12"\npackages: [torch, "transformers[torch]"]\ntraining:\n  '
        "precision: tf32\n"
    )
    fix = judged.one("GPU007").fix
    assert fix is not None
    (text,) = judged.source.apply_fixes([fix]).values()
    assert ask(text).ids == []


@pytest.mark.parametrize(
    ("precision", "torch", "severity"),
    [
        ("fp16", "==2.4.1", Severity.WARNING),
        ("fp16", "==2.5.0", None),
        ("bf16", "==2.5.1", Severity.WARNING),
        ("bf16", "==2.6.0", Severity.INFO),
        ("bf16", ">=2.5", Severity.INFO),
        ("tf32", "", Severity.ERROR),
        ("fp32", "==2.0.1", None),
    ],
)
def test_precision_on_apple_silicon(
    ask: Ask, precision: str, torch: str, severity: Severity | None
) -> None:
    found = ask(
        _spec(
            "mps", "", torch, f"platforms: [macos-arm64]\ntraining: {{precision: {precision}}}\n"
        ).replace("3.12", "3.11")
    ).of("GPU008")
    assert [finding.severity for finding in found] == ([severity] if severity else [])


@pytest.mark.parametrize(
    ("gpu", "needs", "found"),
    [
        ("T4", 'compute_capability: ">=7.5"', 0),
        ("T4", 'compute_capability: ">7.5"', 1),
        ("Z999", 'compute_capability: ">=99"', 0),
    ],
)
def test_needs_on_both_sides_of_the_card(ask: Ask, gpu: str, needs: str, found: int) -> None:
    assert len(ask(_spec(gpu, "", "", f"requires: {{{needs}}}\n")).of("GPU009")) == found


def test_the_card_that_would_do_is_offered_there(ask: Ask) -> None:
    text = _spec(
        "T4", "", "", "requires: {compute_capability: '>=8.0'}\ntargets: {colab: {kind: colab}}\n"
    )
    assert ask(text).one("GPU009").help.endswith("for example L4")


def test_versions_between_two(ask: Ask) -> None:
    """Three CUDA versions that differ are no alarm: the driver's (13.0), the wheels' (12.6), and
    none for nvcc.
    """
    assert (
        ask(
            _spec("T4", "12.6", "==2.11.0", "targets: {colab: {kind: colab, runtime: '2026.07'}}\n")
        ).area("CUD", "GPU")
        == []
    )
