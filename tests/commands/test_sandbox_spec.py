"""What a sandbox verifies in place of what a spec declares."""

from __future__ import annotations

import pytest

from provision.adapters import RealSystem
from provision.commands.shared.load import LoadedSpec, load_spec
from provision.commands.shared.lock_file import read_lock
from provision.commands.shared.sandbox_spec import build_sandbox_spec
from provision.commands.shared.target_plans import get_driver_and_context
from tests.commands.test_vertex_job import SPEC as JOB
from tests.rig import Bench

SPEC = """\
gpu: {gpu}
python: "3.11"
packages: ["transformers[torch]", torch]
training: {{framework: hf-trainer, precision: {precision}}}
targets:
  team: {{kind: colab-enterprise, project: my-project, region: us-central1}}
"""


def built(bench: Bench, gpu: str, precision: str) -> LoadedSpec:
    path = bench.spec(SPEC.format(gpu=gpu, precision=precision))
    system = RealSystem(bench.environment())
    return build_sandbox_spec(load_spec(path, system), system)


@pytest.mark.parametrize("precision", ["fp16", "tf32"])
def test_a_precision_of_gpus_is_replaced_and_named(bench: Bench, precision: str) -> None:
    loaded = built(bench, "T4" if precision == "fp16" else "L4", precision)
    assert loaded.spec.training.precision.value == "fp32"
    assert loaded.declared is not None
    assert loaded.declared.training.precision.value == precision
    assert loaded.sandbox_sources is not None
    assert f"precision: fp32 instead of {precision}" in loaded.sandbox_sources.simulated


@pytest.mark.parametrize(("gpu", "precision"), [("L4", "bf16"), ("T4", "fp32"), ("L4", "fp8")])
def test_other_precisions_are_verified_as_declared(bench: Bench, gpu: str, precision: str) -> None:
    """A CPU computes in bf16 and fp32, and no run tests fp8."""
    loaded = built(bench, gpu, precision)
    assert loaded.spec.training.precision.value == precision
    assert loaded.sandbox_sources is not None
    assert not any("precision" in text for text in loaded.sandbox_sources.simulated)


def test_targets_that_are_not_emulated_are_named(bench: Bench) -> None:
    text = SPEC.format(gpu="none", precision="fp32") + "  laptop: {kind: local}\n"
    bench.spec(text)

    done = bench.run("status", "spec.yaml", "--sandbox")

    assert "only targets on Google Cloud are emulated; left out: laptop" in done.stderr
    assert "team" in done.stdout
    assert "create it with provision apply spec.yaml --sandbox" in done.stdout
    assert "laptop" not in done.stdout


def test_processes_of_a_gpu_spec_are_connected_without_one(bench: Bench) -> None:
    """Elsewhere, the programs of this spec have GPUs and need no variable."""
    text = SPEC.format(gpu="L4:2", precision="fp32, strategy: ddp")
    text = text.replace('"transformers[torch]", torch', "alpha")
    path, system = bench.spec(text), RealSystem(bench.environment())
    on_cpu = bench.spec(text.replace("gpu: L4:2", "gpu: none"), "cpu.yaml")
    loaded = load_spec(on_cpu, system)
    assert bench.run("lock", "cpu.yaml").returncode == 0
    lock = read_lock(loaded, system)
    assert lock is not None
    gpu_spec = load_spec(path, system)
    _, context = get_driver_and_context(gpu_spec, lock, "team", system)
    assert context.spec.env == {}
    emulated = build_sandbox_spec(gpu_spec, system)
    _, context = get_driver_and_context(emulated, lock, "team", system)
    assert context.spec.env == context.effective_spec.env == {"ACCELERATE_USE_CPU": "true"}
    assert not context.spec.gpu.is_none


def test_secrets_of_secret_manager_are_named_as_placeholders(bench: Bench) -> None:
    text = f"{JOB}    service_account: a@my-project.iam.gserviceaccount.com\n"
    path, system = bench.spec(text), RealSystem(bench.environment())
    plain = build_sandbox_spec(load_spec(path, system), system).sandbox_sources
    secrets = "secrets: {B: {secret: projects/p/secrets/b/versions/1, env: B}}\n"
    bench.spec(text + secrets)
    named = build_sandbox_spec(load_spec(path, system), system).sandbox_sources
    assert plain is not None
    assert named is not None
    (note,) = set(named.simulated) - set(plain.simulated)
    assert note.startswith("Secret Manager: placeholders")
    assert note.endswith(": B")
