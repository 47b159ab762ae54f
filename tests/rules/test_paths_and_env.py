"""Rules about folders, variables and what they point to: both sides of each line, and each place by
itself.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from provision.agent.probe.observing.variables import HARMFUL_VARIABLES, SWITCHES, harmful_part
from provision.diagnostics import RouteLocation, Severity
from provision.facts import Facts
from provision.rules.env.rank_set_by_hand import SINGLE_PROCESS_VALUES
from provision.rules.folders import DeclaredFolder, is_within, to_target_path
from provision.source import FINDING_KINDS
from tests.rules.conftest import Ask

HEAD = 'python: "3.12"\npackages: []\n'
COLAB = '{kind: colab, runtime: "2026.07"}'
WORKBENCH = "{kind: workbench, project: my-project, zones: [us-central1-a]}"
CONTAINER = (
    "{kind: workbench, project: my-project, zones: [us-central1-a], image: "
    "workbench-container-2606}"
)
LOCAL = "{kind: local}"
OURS = ("REF102", "REF103", "REF104", "REF105", "ENV010", "ENV011", "ENV012", "ENV013", "ENV014")


def _spec(what: str, target: str = LOCAL, gpu: str = "none") -> str:
    return f"gpu: {gpu}\n{HEAD}{what}\ntargets:\n  there: {target}\n"


def _said(ask: Ask, text: str) -> list[tuple[str, Severity]]:
    return [(one.id, one.severity) for one in ask(text).findings if one.id in OURS]


WARNING, INFO, ERROR = Severity.WARNING, Severity.INFO, Severity.ERROR


@pytest.mark.parametrize(
    ("path", "target", "said"),
    [
        ("/content", LOCAL, [("REF102", WARNING)]),
        ("/content/data", WORKBENCH, [("REF102", WARNING)]),
        ("/content/data", CONTAINER, [("REF102", WARNING)]),
        ("/content/data", COLAB, []),
        ("/content/data", "{kind: colab-enterprise, project: p, region: us-central1}", []),
        ("/contents", WORKBENCH, []),
        ("/home/jupyter/data", COLAB, [("REF102", INFO)]),
        ("/home/jupyter", WORKBENCH, []),
        ("/home/jupyter/data", LOCAL, []),
        ("/home/jupyterx/data", COLAB, []),
        ("/content/drive/MyDrive/data", COLAB, []),
        ("/content/gdrive/MyDrive/data", COLAB, [("REF104", INFO)]),
        ("/content/drive/data", COLAB, [("REF104", WARNING)]),
        ("/content/drive", COLAB, [("REF104", WARNING)]),
        ("/content/drives/data", COLAB, []),
        (
            "/content/drive/MyDrive/data",
            "{kind: colab, runtime: latest, via: colab-cli, isolation: venv}",
            [("REF104", WARNING)],
        ),
        ("/dev/shm/data", LOCAL, []),
        ("/data/$USER", LOCAL, [("REF103", ERROR)]),
        ("/data/%USER%/x", LOCAL, [("REF103", ERROR)]),
        ("/data/a$b", LOCAL, [("REF103", ERROR)]),
        ("/data/a$", LOCAL, []),
        ("/data/50%", LOCAL, []),
        ("/data/a~b", LOCAL, []),
    ],
)
def test_a_folder_of_data(
    ask: Ask, path: str, target: str, said: list[tuple[str, Severity]]
) -> None:
    assert _said(ask, _spec(f"paths: {{data: '{path}'}}", target)) == said


@pytest.mark.parametrize(
    ("path", "target", "said"),
    [
        ("/tmp/out", LOCAL, [("REF105", INFO)]),
        ("/tmpfiles/out", LOCAL, []),
        ("/dev/shm/out", LOCAL, [("REF105", WARNING)]),
        ("/run/out", WORKBENCH, [("REF105", WARNING)]),
        ("/runs/out", LOCAL, []),
        ("/tmp/out", WORKBENCH, [("REF105", WARNING)]),
        ("/opt/out", WORKBENCH, [("REF105", INFO)]),
        ("/opt/out", CONTAINER, [("REF105", WARNING)]),
        ("/home/jupyter/out", CONTAINER, []),
        ("/home/jupyter/out", WORKBENCH, []),
        ("/home/jupyter/out", COLAB, [("REF105", INFO)]),
        ("/content/out", COLAB, [("REF105", INFO)]),
        ("/content/drive/MyDrive/out", COLAB, []),
        ("drive:/out", COLAB, []),
        ("/data/out", LOCAL, []),
    ],
)
def test_a_folder_of_results(
    ask: Ask, path: str, target: str, said: list[tuple[str, Severity]]
) -> None:
    assert _said(ask, _spec(f"paths: {{output: {path}}}", target)) == said


@pytest.mark.parametrize(
    ("key", "results"),
    [
        ("output", True),
        ("output_dir", True),
        ("OUT", True),
        ("best_models", True),
        ("data", False),
        ("layout", False),
    ],
)
def test_names_of_folders_for_results(key: str, results: bool, ask: Ask) -> None:
    site = ask(_spec("env: {}")).case.targets[0]
    assert DeclaredFolder(key, "/x", ("paths", key), site).holds_results is results


@pytest.mark.parametrize(
    ("path", "home", "there"),
    [
        ("/content/drive/MyDrive/a/b", "/home/jupyter", "/home/jupyter/a/b"),
        ("/content/drive/a", "/home/jupyter", "/home/jupyter/a"),
        ("/content/a", "/home/jupyter", "/home/jupyter/a"),
        ("/content", "/home/jupyter", "/home/jupyter"),
        ("/home/jupyter/a", "/content", "/content/a"),
        ("/opt/x/a", "/home/jupyter", "/home/jupyter/a"),
    ],
)
def test_a_path_as_another_place_has_it(path: str, home: str, there: str) -> None:
    assert to_target_path(path, home) == there


def test_a_folder_is_below_itself_and_not_below_its_namesake() -> None:
    assert is_within("/content", "/content")
    assert is_within("/content//a/../b", "/content")
    assert not is_within("/contents", "/content")


def test_the_target_gets_its_own_path(ask: Ask) -> None:
    judged = ask(_spec("paths: {data: /content/data}", WORKBENCH))
    fix = judged.one("REF102").fix
    assert fix is not None
    (text,) = judged.source.apply_fixes([fix]).values()
    assert "paths: {data: /home/jupyter/data}}" in text
    assert ask(text).area("REF") == []


def test_a_second_path_joins_those_that_the_target_has(ask: Ask) -> None:
    target = (
        "{kind: workbench, project: p, zones: [us-central1-a], paths: {cache: /home/jupyter/c}}"
    )
    judged = ask(_spec("paths: {data: /content/data}", target))
    fix = judged.one("REF102").fix
    assert fix is not None
    (text,) = judged.source.apply_fixes([fix]).values()
    assert "paths: {cache: /home/jupyter/c, data: /home/jupyter/data}" in text
    assert ask(text).area("REF") == []


def test_each_target_is_judged_by_its_own_path(ask: Ask) -> None:
    text = (
        f"gpu: none\n{HEAD}paths: {{data: /content/data}}\ntargets:\n  colab: {COLAB}\n  wb: "
        f"{WORKBENCH}\n  here: {{kind: local, paths: {{data: /data}}}}\n"
    )
    judged = ask(text)
    assert [one.where for one in judged.findings if one.id.startswith("REF")] == [
        RouteLocation(("paths", "data"))
    ]
    assert "target `wb` runs on Workbench" in judged.one("REF102").message


def test_every_variable_of_the_table_is_said_and_kept_silent(ask: Ask, facts: Facts) -> None:
    """Each row where it speaks; none of them for another variable, or switched the other way."""
    values = {
        "on": "1",
        "off": "0",
        "set": "/x",
        "(?i)info|trace": "INFO",
        "(?i)detail": "DETAIL",
        r"0+(\.0*)?": "0.0",
        "cpu": "cpu",
        "platform": "platform",
        "(?!(true|false)$).*": "1",
        "FALSE|NO|[Nn]o|OFF|[Oo]ff|[fFnN]": "FALSE",
        "(?i)(?!(default|platform|bfc|cuda_async|vmm)$).*": "malloc",
        r"(?!(\d+\.?\d*|\.\d+)$).+": "50%",
    }
    circumstances = {
        "cuda": "gpu: L4\n",
        "several": "gpu: L4:2\n",
        "mps": "gpu: mps\nplatforms: [macos-arm64]\n",
    }
    training = {
        "workers": "training: {dataloader_workers: 2}\n",
        "compile": "training: {torch_compile: true}\n",
        "tf32": "training: {precision: tf32}\n",
    }
    for rows in facts.variables.values():
        for row in rows:
            gpu = circumstances.get(row.at, "gpu: L4\n" if row.at in training else "gpu: none\n")
            text = (
                gpu
                + HEAD
                + training.get(row.at, "")
                + f'env: {{{row.variable}: "{values[row.when]}"}}\n'
            )
            found = ask(text).one("ENV010")
            assert found.severity == row.severity
            assert row.effect in found.message
            assert found.where == RouteLocation(("env", row.variable))
            if row.at != "any":
                bare = f'gpu: none\n{HEAD}env: {{{row.variable}: "{values[row.when]}"}}\n'
                assert ask(bare).of("ENV010") == [], row
            if row.when == "on":
                assert ask(text.replace('"1"', '"0"')).of("ENV010") == [] or len(rows) > 1


@pytest.mark.parametrize(
    ("value", "speaks"),
    [
        ("1", True),
        ("true", True),
        ("YES", True),
        ("2", True),
        ("0", False),
        ("False", False),
        ("off", False),
        ("", False),
    ],
)
def test_what_switches_a_variable_on(ask: Ask, value: str, speaks: bool) -> None:
    assert (
        bool(ask(_spec(f'env: {{CUDA_LAUNCH_BLOCKING: "{value}"}}', gpu="L4")).of("ENV010"))
        is speaks
    )


def test_the_probe_and_the_table_know_the_same_variables(facts: Facts) -> None:
    """What the device is asked for is what a spec is warned of; PYTHONHOME cannot be set by a spec,
    and of ranks ENV001 speaks.
    """
    known = set(HARMFUL_VARIABLES) - {"PYTHONHOME", *SINGLE_PROCESS_VALUES}
    assert known <= set(facts.variables)
    assert {
        name for name in known if {row.when for row in facts.variables[name]} == {"on"}
    } == SWITCHES


@pytest.mark.parametrize(
    "value", ["0", "false", "No", "off", " off ", "", " ", "1", "true", "yes", "2", "x"]
)
def test_the_probe_and_the_table_take_the_same_values_for_off(facts: Facts, value: str) -> None:
    for name in SWITCHES:
        assert bool(harmful_part(name, value, Path("/"))) is any(
            row.applies_to(value) for row in facts.variables[name]
        ), name


def test_a_switch_that_helps_a_card_is_let_be(ask: Ask) -> None:
    """Cards of the RTX 40 series reach one another through the host only, and accelerate asks for
    the switch.
    """
    switch = 'env: {NCCL_P2P_DISABLE: "1"}'
    assert ask(_spec(switch, gpu="RTX-4090:2")).of("ENV010") == []
    assert ask(_spec(switch, gpu="RTX-3090:2")).of("ENV010") != []
    assert ask(_spec(switch, gpu="L4:1")).of("ENV010") == []


def test_tf32_switched_off_below_is_said_only_where_it_is_wanted(ask: Ask) -> None:
    text = _spec('env: {NVIDIA_TF32_OVERRIDE: "0"}', gpu="L4")
    assert ask(text).of("ENV010") == []
    assert "disables TF32" in ask(text + "training: {precision: tf32}\n").one("ENV010").message


def test_a_variable_with_a_successor_is_renamed_on_request(ask: Ask) -> None:
    judged = ask(_spec("env: {TRANSFORMERS_CACHE: /data/hub}"))
    fix = judged.one("ENV010").fix
    assert fix is not None
    (text,) = judged.source.apply_fixes([fix]).values()
    assert "env: {HF_HUB_CACHE: /data/hub}" in text
    assert ask(text).ids == []


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("HF_HOME", "hf", ["ENV011"]),
        ("HF_HOME", "./hf", ["ENV011"]),
        ("HF_HOME", "~/hf", []),
        ("HF_HOME", "$HOME/hf", ["ENV011"]),
        ("HF_HOME", "/data/$USER", ["ENV011"]),
        ("HF_HUB_CACHE", "$HOME/hub", []),
        ("HF_DATASETS_CACHE", "~/data", ["ENV011"]),
        ("TMPDIR", "~/tmp", ["ENV011"]),
        ("HF_HOME", "", []),
        ("HF_HOME", "C:/hf", []),
        ("ANY_FOLDER", "hf", []),
    ],
)
def test_a_variable_that_names_a_folder(
    ask: Ask, variable: str, value: str, said: list[str]
) -> None:
    assert ask(_spec(f"env: {{{variable}: '{value}'}}")).ids == said


@pytest.mark.parametrize(
    ("variable", "value", "target", "said"),
    [
        ("HF_HOME", "/dev/shm/hf", LOCAL, [("ENV012", WARNING)]),
        ("TMPDIR", "/dev/shm", COLAB, [("ENV012", WARNING)]),
        ("HF_HOME", "/opt/hf", WORKBENCH, [("ENV012", INFO)]),
        ("HF_HOME", "/opt/hf", CONTAINER, [("ENV012", WARNING)]),
        ("HF_HOME", "/home/jupyter/hf", CONTAINER, []),
        ("TMPDIR", "/tmp", CONTAINER, []),
        ("HF_HOME", "/tmp/hf", CONTAINER, [("ENV012", WARNING)]),
        ("HF_HOME", "/opt/hf", LOCAL, []),
        ("HF_HOME", "/content/hf", COLAB, []),
        ("HF_HOME", "/content/hf", LOCAL, [("ENV012", WARNING)]),
        ("HF_HOME", "/content/hf", WORKBENCH, [("ENV012", WARNING)]),
        ("HF_HOME", "/content/drive/MyDrive/hf", COLAB, [("REF104", WARNING)]),
        ("WANDB_DIR", "/dev/shm/runs", LOCAL, []),
    ],
)
def test_where_a_variable_points(
    ask: Ask, variable: str, value: str, target: str, said: list[tuple[str, Severity]]
) -> None:
    assert _said(ask, _spec(f"env: {{{variable}: {value}}}", target)) == said


@pytest.mark.parametrize(
    ("configuration", "severity"),
    [
        ("expandable_segments:True", None),
        ("expandable_segments:False, max_split_size_mb: 128", None),
        ("expandable_segments:1", ERROR),
        ("max_split_size_mb:19", ERROR),
        ("max_split_size_mb:20", None),
        ("garbage_collection_threshold:0.8", None),
        ("garbage_collection_threshold:1.5", ERROR),
        ("garbage_collection_threshold:0", ERROR),
        ("large_segment_size_mb:10", ERROR),
        ("large_segment_size_mb:11", None),
        ("expandable_segments", ERROR),
        ("roundup_power2_divisions:[256:1,512:2,1024:4,>:8]", None),
        ("expandible_segments:True", WARNING),
        ("something_else_entirely:4", None),
        ("", None),
    ],
)
def test_the_configuration_of_the_allocator(
    ask: Ask, configuration: str, severity: Severity | None
) -> None:
    found = ask(_spec(f'env: {{PYTORCH_ALLOC_CONF: "{configuration}"}}', gpu="L4")).of("ENV014")
    assert [one.severity for one in found] == ([severity] if severity else [])


def test_an_index_over_http(ask: Ask) -> None:
    judged = ask(
        'gpu: none\npython: "3.12"\npackages: [{name: a, index: i}]\nindexes: {i: {url: '
        '"http://h.example.com/simple"}}\n'
    )
    fix = judged.one("SEC005").fix
    assert fix is not None
    (text,) = judged.source.apply_fixes([fix]).values()
    assert '"https://h.example.com/simple"' in text
    assert ask(text).ids == []


def test_no_other_finding_has_these_ids() -> None:
    assert not {finding.id for finding in FINDING_KINDS} & set(OURS)


def test_a_plain_spec_with_folders_and_variables_is_clean(ask: Ask) -> None:
    text = (
        f"gpu: L4\n{HEAD}paths: {{data: /home/jupyter/data, output: /home/jupyter/out}}\n"
        'env: {TOKENIZERS_PARALLELISM: "false", HF_HOME: /home/jupyter/hf, '
        'PYTORCH_ALLOC_CONF: "expandable_segments:True", OMP_NUM_THREADS: "4"}\n'
        f"targets:\n  wb: {WORKBENCH}\n  container: {CONTAINER}\n"
    )
    assert _said(ask, text) == []


def test_pythonpath_is_replaced_by_what_each_kind_accepts(ask: Ask) -> None:
    """A vertex-job refuses packages from paths, so they are not the advice."""
    found = ask(_spec("env: {PYTHONPATH: src}")).one("ENV010")
    assert "`code: src`" in found.help
    assert "package" not in found.help
