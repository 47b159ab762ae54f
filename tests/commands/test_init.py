"""`provision init` with a GPU and targets: the spec that it writes, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from provision.adapters import RealSystem
from provision.commands.init import init
from provision.errors import UsageError
from provision.facts import load_facts
from tests.pytorch_rig import PyTorch
from tests.rig import Bench

CONDA = "dependencies:\n  - python=3.12\n  - ffmpeg\n  - pip:\n      - numpy==2.0.2\n"


def lint(bench: Bench, name: str = "provision.yaml") -> list[dict[str, object]]:
    """Return the findings of a spec that are not notes."""
    done = bench.run("lint", name, "--output-format", "json")
    found: list[dict[str, object]] = json.loads(done.stdout)["diagnostics"]
    return [finding for finding in found if finding["severity"] != "info"]


def written(bench: Bench, name: str = "provision.yaml") -> str:
    return (bench.folder / name).read_text(encoding="utf-8")


def test_a_spec_for_two_targets(bench: Bench) -> None:
    done = bench.run("init", "--gpu", "nvidia-l4", "--target", "colab", "--target", "workbench")
    assert done.returncode == 0, done.stderr
    text = written(bench)
    assert "\ngpu: L4\n" in text
    assert '\npython: "3.12"\n' in text  # that of the runtime and of the image
    assert "- torch==2.11.*\n" in text  # that of the runtime: it stays
    assert text.endswith(
        "targets:\n"
        "  colab:\n"
        "    kind: colab\n"
        '    runtime: "2026.07"\n'
        "  workbench:\n"
        "    kind: workbench\n"
        "    project: my-project # yours\n"
        "    zones: [us-central1-a, us-central1-b, us-central1-c] # tried in this order\n"
        "    machine_type: g2-standard-4 # the cheapest in us-central1 with this GPU\n"
        "    image: workbench-instances-2603 # the newest image in this family\n"
        "    bucket: gs://my-bucket/provision # yours, for the startup script and the report\n"
        '    service_account: "trainer@my-project.iam.gserviceaccount.com" # yours\n'
        "    nat: true # packages are downloaded through Cloud NAT\n"
        '    idle_shutdown: "60m"\n'
        '    max_lifetime: "8h"\n'
    )
    assert [finding["id"] for finding in lint(bench)] == ["IMG002"]  # the family is not an image
    assert (
        "next: set targets.workbench.project, targets.workbench.bucket, "
        "targets.workbench.service_account; then provision lint provision.yaml" in done.stdout
    )


@pytest.mark.long
def test_every_gpu_gives_a_spec_without_errors_or_a_refusal(tmp_path: Path) -> None:
    """`init` refuses a spec with errors."""
    offered: dict[str, list[str]] = {"colab": [], "workbench": [], "local": []}
    names = [card.name for card in load_facts().cards if card.status or card.name == "RTX-4090"]
    hints: list[str] = []
    for kind, accepted in offered.items():
        for name in ("none", *names):
            try:
                init(tmp_path / "x.yaml", RealSystem(), print, force=True, gpu=name, kinds=[kind])
            except UsageError as error:
                hints.append(error.hint)
            else:
                accepted.append(name)
    assert all(hints)
    assert offered["colab"] == [
        *("none", "T4", "L4", "A100-40GB", "A100-80GB", "H100-80GB", "RTX-PRO-6000"),
    ]
    assert offered["workbench"] == [
        *("none", "P4", "V100", "T4", "L4", "A100-40GB", "A100-80GB", "RTX-PRO-6000"),
    ]
    assert offered["local"] == ["none", *names]


@pytest.mark.parametrize(
    ("arguments", "messages"),
    [
        (
            ["--gpu", "V100", "-t", "colab"],
            ["Colab does not offer V100", "use one of none, T4, L4, A100-40GB"],
        ),
        (["--gpu", "RTX-4090", "-t", "workbench"], ["Workbench does not offer RTX-4090", "V100"]),
        (["--gpu", "T4:2", "-t", "colab"], ["a Colab runtime has only one GPU", "set `gpu: T4`"]),
        (
            ["--gpu", "L4:3", "-t", "workbench"],
            ["there is no Workbench machine type with 3 x L4", "2, 4 or 8"],
        ),
        (["--gpu", "A100-80BG"], ["unknown GPU A100-80BG", "did you mean A100-80GB"]),
        (["--gpu", "L4:x"], ["--gpu L4:x: not a known GPU", "A100-80GB:2"]),
        (["--gpu", ""], ["--gpu '': not a known GPU"]),
        (["--gpu", "L4\nx: 1"], ["not a known GPU"]),
        (["-t", "workbnech"], ["unknown target kind workbnech", "'workbench'"]),
        (["-t", "moon"], ["unknown target kind moon", "kinds: local, colab"]),
        (["--from", "requirements.txt", "--gpu", "V100", "-t", "colab"], ["does not offer V100"]),
        (["--from", "notebook.ipynb", "-t", "workbench", "--gpu", "H1"], ["unknown GPU H1"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_refusals(bench: Bench, arguments: list[str], messages: list[str]) -> None:
    (bench.folder / "requirements.txt").write_text("numpy\n")
    (bench.folder / "notebook.ipynb").write_text('{"cells": [], "metadata": {}, "nbformat": 4}')
    done = bench.run("init", *arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    for message in messages:
        assert message in done.stderr
    assert not (bench.folder / "provision.yaml").exists()


def test_apple_silicon_gets_its_platform(bench: Bench) -> None:
    assert bench.run("init", "--gpu", "mps", "--target", "local").returncode == 0
    assert "platforms: [macos-arm64]\n" in written(bench)
    assert lint(bench) == []


def test_json(bench: Bench) -> None:
    done = bench.run("init", "-t", "colab", "--output-format", "json")
    assert json.loads(done.stdout) == {
        "version": 1,
        "wrote": "provision.yaml",
        "placeholders": [],
    }


def test_files_with_a_gpu_and_targets(bench: Bench, pytorch: PyTorch) -> None:
    (bench.folder / "requirements.txt").write_text("torch==2.11.*\n")
    done = bench.run(
        *("init", "--from", "requirements.txt", "--gpu", "T4"),
        *("--target", "local", "--target", "colab", "--target", "workbench"),
    )
    assert done.returncode == 0, done.stderr
    assert "next: set targets.workbench.project, targets.workbench.bucket" in done.stdout
    text = written(bench)
    assert text.startswith("# yaml-language-server: ")
    assert "machine_type: n1-standard-4 # the cheapest" in text
    assert [finding["id"] for finding in lint(bench)] == ["IMG002"]
    offline = pytorch.offline()
    locked = bench.run("lock", **offline)  # type: ignore[arg-type]
    assert locked.returncode == 0, locked.stderr
    for target, options in (("colab", ()), ("workbench", ("--sandbox",))):
        planned = bench.run("plan", "--target", target, *options, **offline)  # type: ignore[arg-type]
        assert planned.returncode == 0, planned.stderr
        assert "Plan: 1 to create" in planned.stdout


def test_a_plan_of_a_local_target(bench: Bench) -> None:
    (bench.folder / "requirements.txt").write_text("alpha==2.0\n")
    bench.run("init", "--from", "requirements.txt", "--gpu", "none", "-t", "local")
    planned = bench.run("plan")
    assert planned.returncode == 0, planned.stderr


def test_the_gpu_of_the_files_chooses_the_machine(bench: Bench) -> None:
    (bench.folder / "task.yaml").write_text(
        "resources:\n  accelerators: A100:2\nsetup: pip install torch==2.11.0\nrun: python x\n"
    )
    done = bench.run("init", "--from", "task.yaml", "--target", "workbench")
    assert done.returncode == 0, done.stderr
    assert "machine_type: a2-highgpu-2g # the cheapest in us-central1 with this GPU" in written(
        bench
    )


def test_a_runtime_that_a_notebook_names_is_kept(bench: Bench) -> None:
    metadata = {"colab": {"runtimeAttributes": {"runtime_version": "2026.04"}}}
    notebook = {"cells": [], "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    (bench.folder / "train.ipynb").write_text(json.dumps(notebook))
    done = bench.run("init", "--from", "train.ipynb", "-t", "colab", "-t", "local")
    assert done.returncode == 0, done.stderr
    assert 'runtime: "2026.04"\n' in written(bench)
    assert "  local:\n    kind: local\n" in written(bench)


def test_packages_of_conda_need_a_target_that_conda_creates(bench: Bench) -> None:
    (bench.folder / "environment.yml").write_text(CONDA)
    done = bench.run("init", "--from", "environment.yml", "--target", "local", "-t", "colab")
    assert done.returncode == 0, done.stderr
    assert "    kind: local\n    manager: conda\n" in written(bench)
    assert "conda_packages:\n  - ffmpeg\n" in written(bench)
    done = bench.run("init", "--force", "--from", "environment.yml", "--target", "colab")
    assert done.returncode == 0, done.stderr
    assert "conda_packages" not in written(bench)
    assert "environment.yml:3:5: ffmpeg: left out\n" in done.stderr
    assert "add a target with `{kind: local, manager: conda}`" in done.stderr


def test_the_starter_spec_has_what_init_replaces(bench: Bench) -> None:
    """`init` replaces lines of templates/spec.yaml: a change there must not pass unseen."""
    assert bench.run("init").returncode == 0
    plain = written(bench)
    assert bench.run("init", "--force", "--gpu", "K80", "-t", "local").returncode == 0
    changed = Path(bench.folder / "provision.yaml").read_text(encoding="utf-8")
    assert lint(bench, "provision.yaml")
    for line in ("gpu: none\n", "  - torch==2.13.*\n", "# targets:\n"):
        assert line in plain
        assert line not in changed


def test_a_machine_without_a_gpu_is_the_cheapest_with_a_known_price(bench: Bench) -> None:
    assert bench.run("init", "--target", "workbench").returncode == 0
    written = (bench.folder / "provision.yaml").read_text()
    assert "machine_type: n1-standard-4 # the cheapest in us-central1\n" in written
