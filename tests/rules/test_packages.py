"""Rules about what packages need of each other, beyond their examples: both sides of each
threshold, gaps in the tables, resolved sets.
"""

from __future__ import annotations

import pytest

from provision.diagnostics import RouteLocation, Severity
from provision.facts import Facts
from provision.facts.versions import is_satisfiable, next_version, parse_specifiers, version_bounds
from provision.rules import ResolvedSet
from provision.rules.package_requirements import (
    is_certainly_within,
    possible_releases,
    sort_specifiers,
)
from tests.rules.conftest import Ask

HEAD = 'gpu: none\npython: "3.11"\n'


def _packages(*lines: str) -> str:
    return HEAD + "packages:\n" + "".join(f"  - {line}\n" for line in lines)


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        ("==0.21.0", "<=0.23.0,>=0.22.0", False),
        ("==0.22.0", "<=0.23.0,>=0.22.0", True),
        (">=2", "<2.0.0,>=1.17", False),
        (">=1.26", "<2.0.0,>=1.17", True),
        ("", "", True),
        ("==2.1.*", "!=2.1.0,<2.2", True),
        ("~=5.13.1", ">=5.14", False),
    ],
)
def test_two_specifiers_meet_or_do_not(one: str, other: str, both: bool) -> None:
    assert is_satisfiable(one, other) is both


def test_ends_enclose_what_is_admitted() -> None:
    assert [str(end) for end in version_bounds(parse_specifiers("~=5.13.1"))] == ["5.13.1", "5.14"]
    assert [str(end) for end in version_bounds(parse_specifiers("==2.1.*"))] == ["2.1", "2.2"]
    assert version_bounds(parse_specifiers("!=3"))[0] is None
    assert next_version("0.0.33.post2") == "0.0.33.post3"
    assert next_version("2.13.0") == "2.13.0.0.1"


def test_a_release_that_was_not_read_is_judged_by_both_its_neighbours(facts: Facts) -> None:
    held = possible_releases(facts, "transformers", "==4.46.0")
    assert held is not None
    assert [row.first for row in held.rows] == ["4.46.3", "4.45.2"]


def test_newer_releases_than_the_table_are_not_judged(facts: Facts) -> None:
    assert possible_releases(facts, "transformers", ">=5.13") is None
    assert possible_releases(facts, "transformers", "==99.0") is None
    assert possible_releases(facts, "no-such-package", "==1") is None


def test_older_releases_than_the_table_make_it_less_sure(facts: Facts) -> None:
    held = possible_releases(facts, "peft", "<0.18")
    assert held is not None
    assert not held.is_complete


@pytest.mark.parametrize(
    ("specifiers", "within"),
    [
        ("==0.17.1", True),
        (">=0.16,<0.18", False),
        ("==0.18.0", False),
        ("==0.15.2", False),
        ("", False),
    ],
)
def test_surely_within(specifiers: str, within: bool) -> None:
    assert is_certainly_within(specifiers, "0.16.0", "0.17.1") is within


def test_tidy_puts_the_floor_first() -> None:
    assert sort_specifiers("<=0.23.0,>=0.22.0") == ">=0.22.0,<=0.23.0"
    assert sort_specifiers("!=0.11.3,<0.13,>=0.11.1") == ">=0.11.1,!=0.11.3,<0.13"


def test_what_a_conflict_offers_removes_it(ask: Ask) -> None:
    judged = ask(_packages("transformers[torch]==5.13.1", "tokenizers==0.21.0"))
    found = judged.one("PKG009")
    assert "transformers==4.55.4" in found.help
    assert found.fix is not None
    (text,) = judged.source.apply_fixes([found.fix]).values()
    assert ask(text).ids == []
    assert "PKG009" not in ask(_packages("transformers[torch]==4.55.4", "tokenizers==0.21.0")).ids


def test_two_packages_that_differ_about_a_third_name_releases_that_agree(ask: Ask) -> None:
    found = ask(_packages("transformers[torch]==4.57.6", "datasets==5.1.0")).one("PKG009")
    assert "huggingface-hub" in found.message
    assert found.help == "use transformers==5.24.0 or datasets==5.0.1"
    assert ask(_packages("transformers[torch]==4.57.6", "datasets==5.0.1")).ids == []
    assert ask(_packages("transformers[torch]==5.23.0", "datasets==5.1.0")).ids == []


def test_a_conflict_with_releases_older_than_the_table_may_warn(ask: Ask) -> None:
    assert (
        ask(_packages("transformers[torch]<4.45", "tokenizers==0.22.0")).one("PKG009").severity
        is Severity.WARNING
    )
    assert (
        ask(_packages("transformers[torch]>=4.40,<4.45", "tokenizers==0.22.0"))
        .one("PKG009")
        .severity
        is Severity.ERROR
    )


def test_markers_conda_and_other_indexes_are_let_be(ask: Ask) -> None:
    assert (
        ask(
            _packages(
                "transformers[torch]==5.13.1", "\"tokenizers==0.21.0; sys_platform == 'darwin'\""
            )
        ).ids
        == []
    )
    own = _packages(
        "transformers[torch]==5.13.1", '{name: tokenizers, version: "==0.21.0", index: ours}'
    )
    assert ask(own + 'indexes: {ours: {url: "https://packages.example.com/simple"}}\n').ids == []


def test_a_ceiling_that_another_package_keeps_needs_no_bound(ask: Ask) -> None:
    """accelerate 0.33.0 asks for numpy below 2 itself; 0.34.2 does not."""
    assert "PKG011" not in ask(_packages("torch==2.2.2", "numpy", "accelerate==0.33.0")).ids
    assert "PKG011" in ask(_packages("torch==2.2.2", "numpy", "accelerate==0.34.2")).ids


@pytest.mark.parametrize(
    ("listed", "other", "fails", "works"),
    [
        ("flask==2.2.2", "werkzeug", "3.0.0", "2.3.8"),
        ("gradio==4.44.1", "huggingface-hub", "1.0.0", "0.36.2"),
        ("vllm==0.9.2", "transformers", "4.54.0", "4.53.3"),
        ("dgl==2.1.0", "torchdata", "0.10.0", "0.9.0"),
        ("mmdet==3.3.0", "mmcv", "2.2.0", "2.1.0"),
        ("statsmodels==0.14.4", "scipy", "1.16.0", "1.15.3"),
        ("deepspeed==0.9.0", "pydantic", "2.5.0", "1.10.13"),
        ("deepspeed==0.8.0", "pydantic", "2.5.0", "1.10.13"),
        ("chromadb==0.3.23", "pydantic", "2.5.0", "1.10.13"),
        ("librosa==0.8.1", "numpy", "1.24.4", "1.23.5"),
        ("nemo-toolkit==1.23.0", "huggingface-hub", "0.24.0", "0.23.5"),
        ("numpyro==0.13.0", "jax", "0.4.24", "0.4.23"),
    ],
)
def test_a_name_that_a_newer_release_removed(
    ask: Ask, listed: str, other: str, fails: str, works: str
) -> None:
    found = {
        version: [
            one.severity
            for one in ask(_packages(listed, f"{other}=={version}")).of("PKG010")
            if f"needs {other}<" in one.message
        ]
        for version in (fails, works)
    }
    assert found == {fails: [Severity.ERROR], works: []}


def test_a_resolved_set_points_at_the_line_that_let_the_version_in(ask: Ask) -> None:
    resolved = ResolvedSet({"datasets": "2.14.4", "pyarrow": "21.0.0"}, "3.11")
    listed = ask(_packages("numpy<2".join('""'), "datasets==2.14.4", "pyarrow"), resolved).one(
        "PKG010"
    )
    assert listed.where == RouteLocation(("packages", 2))
    brought = ask(_packages("numpy<2".join('""'), "datasets==2.14.4"), resolved).one("PKG010")
    assert brought.where == RouteLocation(("packages", 1))
    assert brought.severity is Severity.ERROR
    assert "pyarrow<21" in brought.help
    nobody = ResolvedSet({"datasets": "2.14.4", "pyarrow": "21.0.0", "our-tools": "1.0"}, "3.11")
    assert ask(_packages("our-tools"), nobody).one("PKG010").where == RouteLocation(("packages",))
    assert (
        ask(
            _packages("datasets==2.14.4"),
            ResolvedSet({"datasets": "2.14.4", "pyarrow": "14.0.0"}, "3.11"),
        ).ids
        == []
    )


@pytest.mark.parametrize(
    ("kernels", "found"), [("0.15.1", True), ("0.15.2", False), ("0.15.9", False), ("0.16.0", True)]
)
def test_what_transformers_checks_itself_has_a_floor_and_a_ceiling(
    ask: Ask, kernels: str, found: bool
) -> None:
    judged = ask(_packages("transformers[torch]==5.13.1", f"kernels=={kernels}"))
    assert ("PKG010" in judged.ids) is found


def test_bitsandbytes_that_qlora_loads_is_an_error(ask: Ask) -> None:
    spec = (
        'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]==5.13.1", peft==0.20.0, '
        "bitsandbytes==0.45.5]\n"
    )
    assert ask(spec).one("PKG010").severity is Severity.WARNING
    assert ask(spec + "training: {method: qlora}\n").one("PKG010").severity is Severity.ERROR


def test_python_floors_on_both_sides(ask: Ask) -> None:
    text = 'gpu: none\npython: "{}"\npackages: [torch, "transformers[torch]==5.21.1"]\n'
    found = ask(text.format("3.10")).one("PKG013")
    assert found.help == 'set `python: "3.11"`, or transformers==5.20.2'
    assert "PKG013" not in ask(text.format("3.11")).ids


@pytest.mark.parametrize(("cuda", "found"), [("12.9", []), ("13.0", ["PKG016"])])
def test_binaries_of_bitsandbytes_by_cuda(ask: Ask, cuda: str, found: list[str]) -> None:
    assert (
        ask(f'gpu: L4\ncuda: "{cuda}"\npython: "3.11"\npackages: [bitsandbytes==0.46.1]\n').ids
        == found
    )


def test_an_unread_bitsandbytes_is_judged_by_its_neighbours(ask: Ask) -> None:
    spec = 'gpu: L4\ncuda: "13.0"\npython: "3.11"\npackages: [bitsandbytes=={}]\n'
    assert ask(spec.format("0.48.0")).ids == []
    assert ask(spec.format("0.46.1")).ids == ["PKG016"]


@pytest.mark.parametrize(
    ("card", "flavour", "found"),
    [
        ("T4", "cu130", []),
        ("V100", "cu130", ["PKG017"]),
        ("V100", "cu128", []),
        ("P100", "cu128", ["PKG017"]),
        ("P100", "cu126", []),
    ],
)
def test_bitsandbytes_on_cards_by_build(
    ask: Ask, card: str, flavour: str, found: list[str]
) -> None:
    resolved = ResolvedSet({"bitsandbytes": "0.50.2"}, "3.11", flavour)
    assert ask(f'gpu: {card}\npython: "3.11"\npackages: [bitsandbytes]\n', resolved).ids == found


def test_hopper_alone(ask: Ask) -> None:
    spec = (
        'gpu: {}\npython: "3.11"\npackages: [{{name: flash-attn-3, index: ours}}]\nindexes: '
        '{{ours: {{url: "https://download.pytorch.org/whl/x"}}}}\n'
    )
    assert "PKG017" in ask(spec.format("B200")).ids
    assert "PKG017" in ask(spec.format("L4")).ids
    assert "PKG017" not in ask(spec.format("H100")).ids


def test_a_source_package_with_a_short_line_gets_a_mapping(ask: Ask) -> None:
    judged = ask(
        'gpu: L4\npython: "3.11"\npackages:\n  - flash-attn==2.8.3\n  - {name: mamba-ssm}\n'
    )
    fixes = [finding.fix for finding in judged.of("PKG014")]
    (text,) = judged.source.apply_fixes([fix for fix in fixes if fix]).values()
    assert (
        '  - {name: flash-attn, version: "==2.8.3", build: true}\n  - {name: mamba-ssm, '
        "build: true}\n" in text
    )
    assert "PKG014" not in ask(text).ids


def test_cudnn_pins_of_two_frameworks(ask: Ask) -> None:
    """torch 2.8.0 pins 9.10.2.21; tensorflow 2.19.1 pins 9.3.0.75, 2.20.0 takes 9.3.0.75 and newer."""  # noqa: E501
    text = (
        'gpu: L4\ncuda: "12.8"\npython: "3.11"\npackages: [torch==2.8.0, '
        '"tensorflow[and-cuda]=={}"]\n'
    )
    assert ask(text.format("2.19.1")).one("PKG018").severity is Severity.ERROR
    assert (
        ask(text.format("2.19.1").replace('"12.8"', "auto")).one("PKG018").severity
        is Severity.WARNING
    )
    assert ask(text.format("2.20.0")).one("PKG018").severity is Severity.INFO
    assert ask(text.format("2.20.0") + 'env: {TF_FORCE_GPU_ALLOW_GROWTH: "true"}\n').ids == []


def test_a_secret_is_named_as_the_targets_reach_it(ask: Ask) -> None:
    text = _packages("torch") + "training: {arguments: {push_to_hub: true}}\n"
    here = ask(text)
    fix = here.one("PKG023").fix
    assert fix is not None
    (mended,) = here.source.apply_fixes([fix]).values()
    assert mended.endswith("secrets: {HF_TOKEN: {env: HF_TOKEN}}\n")
    assert ask(mended).ids == []
    colab = ask(text + "targets: {c: {kind: colab}}\n")
    (mended,) = colab.source.apply_fixes(
        [one.fix for one in colab.of("PKG023") if one.fix]
    ).values()
    assert "{HF_TOKEN: {colab: HF_TOKEN}}" in mended
    both = ask(text + "targets: {a: {kind: local}, c: {kind: colab}}\n")
    (mended,) = both.source.apply_fixes([one.fix for one in both.of("PKG023") if one.fix]).values()
    assert "{HF_TOKEN: {colab: HF_TOKEN, env: HF_TOKEN}}" in mended
    cloud = "{kind: workbench, project: my-project, zones: [us-central1-a]}"
    assert ask(f"{text}targets: {{a: {{kind: local}}, w: {cloud}}}\n").one("PKG023").fix is None


@pytest.mark.parametrize(
    ("rule", "packages", "training"),
    [
        ("PKG001", "transformers==5.13.1", "{}"),
        ("TRN012", '"transformers[torch]==5.13.1"', "{optimizer: paged_adamw_8bit}"),
    ],
)
def test_what_an_unknown_package_may_bring_is_an_error_only_once_it_is_resolved(
    rule: str, packages: str, training: str, ask: Ask
) -> None:
    text = f"{HEAD}packages: [torch, {packages}{{}}]\ntraining: {training}\n"
    resolved = ResolvedSet(
        {"torch": "2.13.0", "transformers": "5.13.1", "our-tools": "1.0"}, "3.11", "cpu"
    )

    def severity(more: str, held: ResolvedSet | None = None) -> list[Severity]:
        return [
            one.severity
            for one in ask(text.replace("{}]", f"{more}]"), held).findings
            if one.id == rule
        ]

    assert severity("") == [Severity.ERROR]
    assert severity(", datasets") == [Severity.ERROR]
    assert severity(", our-tools") == [Severity.WARNING]
    assert severity(", our-tools", resolved) == [Severity.ERROR]
    assert severity(", unsloth") == []


@pytest.mark.parametrize(
    ("more", "numpy", "severity"),
    [
        ("transformers==4.38.2, accelerate", "==2.0.0", Severity.ERROR),
        ("transformers==4.38.2, accelerate", "", Severity.WARNING),
        ("datasets==2.21.0", "==2.0.0", Severity.ERROR),
    ],
)
def test_torch_built_for_numpy_1_is_an_error_where_it_is_sure_to_meet_numpy_2(
    more: str, numpy: str, severity: Severity, ask: Ask
) -> None:
    text = f"{HEAD}packages: [torch==2.2.2, numpy{numpy}, {more}]\n"
    assert ask(text).one("PKG011").severity is severity
    resolved = ResolvedSet(
        {
            "torch": "2.2.2+cpu",
            "numpy": "2.0.0",
            "transformers": "4.38.2",
            "accelerate": "0.30.0",
            "datasets": "2.21.0",
        },
        "3.11",
        "cpu",
    )
    assert ask(text, resolved).one("PKG011").severity is Severity.ERROR
    assert (
        ask(f"{HEAD}packages: [torch==2.2.2, {more}]\n", resolved).one("PKG011").severity
        is Severity.ERROR
    ) is ("transformers" in more)


def test_a_release_newer_than_the_list_of_those_without_wheels_is_not_known(ask: Ask) -> None:
    found = ask('gpu: L4\npython: "3.11"\npackages: [torch, flash-attn==3.0.0]\n').one("PKG014")
    assert found.severity is Severity.WARNING
    assert "flash-attn==3.0.0 is not in the facts" in found.message
    assert (
        ask('gpu: L4\npython: "3.11"\npackages: [torch, flash-attn>=2]\n').one("PKG014").severity
        is Severity.ERROR
    )


@pytest.mark.parametrize(
    ("head", "packages", "version", "fix"),
    [
        ("gpu: A100-80GB", "vllm", None, ""),  # the lock chooses a build for CUDA 13
        ("gpu: A100-80GB", '"vllm>=0.20"', None, ""),
        ('gpu: A100-80GB\nrequires: {driver: "==550.*"}', "vllm", "0.33.0", 'cuda: "13.0"'),
        (
            "gpu: V100",
            "vllm",
            "0.33.0",
            "packages: [vllm==0.19.1]",
        ),  # no build for CUDA 13 has code for it
        ('gpu: L4\ncuda: "12.6"', "vllm", "0.33.0", "packages: [vllm==0.19.1]"),
        (
            'gpu: L4\ncuda: "12.6"',
            'vllm, "transformers[torch]==5.4.0"',
            None,
            "",
        ),  # 0.10.2 is the newest that takes this transformers
        ('gpu: L4\ncuda: "13.0"', "vllm, torch==2.10.0", "0.19.1", 'cuda: "12.6"'),
        ('gpu: L4\ncuda: "13.0"', "vllm, torch==2.11.0", None, ""),
        ("gpu: L4", '"vllm<0.20"', None, ""),
        ("gpu: none", "vllm", None, ""),
        ('gpu: L4\ncuda: "none"', "vllm", None, ""),
    ],
)
def test_vllm_is_compiled_for_one_cuda_major(
    head: str, packages: str, version: str | None, fix: str, ask: Ask
) -> None:
    judged = ask(f'{head}\npython: "3.11"\npackages: [{packages}]\n')
    found = judged.of("PKG027")
    assert [one.message.split()[1] for one in found] == ([version] if version else [])
    for one in found:
        assert one.severity is Severity.ERROR
        assert one.fix is not None
        (text,) = judged.source.apply_fixes([one.fix]).values()
        assert fix in text
        assert "PKG027" not in ask(text).ids


def test_a_driver_that_a_place_has_decides_which_cuda_is_offered(ask: Ask) -> None:
    head = (
        'python: "3.11"\npackages: [vllm]\ngpu: L4\ntargets:\n  here: {kind: workbench, '
        "project: my-project, zones: [us-central1-a], "
    )
    old = ask(f"{head}image: common-cu128-ubuntu-2204-nvidia-570}}\n").one("PKG027")
    assert old.help == "use vllm==0.19.1"


def test_a_locked_vllm_that_is_newer_than_the_table_may_warn(ask: Ask) -> None:
    text = 'gpu: L4\npython: "3.11"\npackages: [vllm]\n'
    for version, severity in (("0.33.0", Severity.ERROR), ("0.40.0", Severity.WARNING)):
        found = ask(
            text, ResolvedSet({"torch": "2.14.0+cu126", "vllm": version}, "3.11", "cu126")
        ).one("PKG027")
        assert found.severity is severity
        assert found.help.startswith('set `cuda: "13.0"` (driver 580.65.06 or newer)')
    assert not ask(
        text, ResolvedSet({"torch": "2.14.0+cu130", "vllm": "0.40.0"}, "3.11", "cu130")
    ).of("PKG027")
    assert not ask(text, ResolvedSet({"torch": "2.0.1", "vllm": "0.0.9"}, "3.11", "cu118")).of(
        "PKG027"
    )


@pytest.mark.parametrize(
    ("pyarrow", "severity"),
    [
        ("14.0.0", None),
        ("14.0.1", Severity.WARNING),
        ("20.0.0", Severity.WARNING),
        ("21.0.0", Severity.ERROR),
    ],
)
def test_an_old_datasets_loses_its_arrays_before_it_loses_its_import(
    pyarrow: str, severity: Severity | None, ask: Ask
) -> None:
    found = ask(_packages("datasets==2.14.6", f"pyarrow=={pyarrow}")).of("PKG010")
    assert [one.severity for one in found] == ([severity] if severity else [])
    assert not ask(_packages("datasets==2.14.7", f"pyarrow=={pyarrow}")).of("PKG010")


@pytest.mark.parametrize(
    ("line", "declares"),
    [
        ("pandas==2.1.1", False),
        ("pandas==2.1.2", True),
        ("pandas==2.2.1", True),
        ("scipy==1.6.1", False),
        ("scipy==1.6.2", True),
        ("scipy==1.12.0", True),
        ("scikit-learn==1.3.0", False),
        ("scikit-learn==1.4.1.post1", True),
        ("pyarrow==14.0.2", False),
        ("pyarrow==15.0.2", True),
        ("pyarrow==16.0.0", False),
        ("torch==2.2.2", False),
    ],
)
def test_what_a_release_declares_of_numpy_2_is_not_called_undeclared(
    line: str, declares: bool, ask: Ask
) -> None:
    name, _, version = line.partition("==")
    (resolved,) = ask(
        _packages(line), ResolvedSet({name: version, "numpy": "2.0.2"}, "3.11", "cpu")
    ).of("PKG011")
    assert ("which it does not declare" in resolved.message) is not declares
    (asked,) = ask(_packages(line, "numpy==2.0.2")).of("PKG011")
    assert ("which it does not declare" in asked.message) is not declares
    assert len(ask(_packages(line, "numpy")).of("PKG011")) == (0 if declares else 1)


def test_a_conflict_that_pandas_declares_is_said_once(ask: Ask) -> None:
    assert ask(_packages("pandas==2.1.4", "numpy==2.0.2")).area("PKG009", "PKG011") == ["PKG009"]


@pytest.mark.parametrize(
    ("tensorflow", "other", "conflicts"),
    [
        ("2.16.2", "protobuf==5.29.*", True),
        ("2.18.1", "protobuf==5.29.*", False),
        ("2.20.0", "protobuf==4.25.*", True),
        ("2.21.0", "protobuf==6.31.*", False),
        ("2.16.2", "numpy==2.0.*", True),
        ("2.18.1", "numpy==2.0.*", False),
        ("2.15.1", "keras==3.*", True),
        ("2.16.2", "keras==3.*", False),
    ],
)
def test_tensorflow_declares_its_windows(
    ask: Ask, tensorflow: str, other: str, conflicts: bool
) -> None:
    spec = (
        f'gpu: none\npython: "3.11"\npackages: [tensorflow=={tensorflow}, {other}]\n'
        "training: {framework: none}\n"
    )
    assert bool(ask(spec).of("PKG009")) is conflicts


@pytest.mark.parametrize(
    ("torch", "companion", "found"),
    [
        ("2.5.1", "torchvision==0.20.2", []),  # newer than the table: it may be made for 2.5.1
        ("2.5.1", "torchvision>0.20.1", []),
        ("2.5.0", "torchvision==0.20.2", ["PKG012"]),
        ("2.5.0", "torchvision>0.20.0", ["PKG012"]),
        ("2.5.1", "torchaudio==2.5.0a0+b3f2ea4", []),
        ("2.5.1", "torchaudio==2.5.0.dev20240927", []),
    ],
)
def test_patches_and_builds_of_companions(
    ask: Ask, torch: str, companion: str, found: list[str]
) -> None:
    ids = ask(_packages(f"torch=={torch}", companion)).ids
    assert [identity for identity in ids if identity == "PKG012"] == found


def test_an_old_release_is_outside_the_listed_ones(ask: Ask, facts: Facts) -> None:
    (finding,) = ask(_packages("torch==1.7.1")).of("PKG003")
    first, last = facts.torch[0].release, facts.torch[-1].release
    assert finding.message.endswith(f"no release torch==1.7.1, only those from {first} to {last}")
