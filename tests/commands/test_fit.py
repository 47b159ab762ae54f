"""`provision fit`: what a training takes, against what each target has."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from provision.adapters import RealSystem
from provision.agent.probe.report_json import canonical_digest, to_canonical_json
from provision.commands.fit import FitResult, fit
from provision.errors import ProvisionError, Refused
from provision.verification import Report
from provision.verification.fit_model import FitResource, NeedOrigin, ResourceFit, RunFigures
from provision.views import fit as view
from provision.views import run_record_text
from tests.applied_project import apply_once
from tests.rig import Bench, small_spec
from tests.views.test_runs import record as run_record

GIB = 2**30
ROOT = Path(__file__).resolve().parents[2]
RUNS = Path(__file__).parent / "run_records"
"""Records of examples/keras-memory on TensorFlow 2.21: 220000 images in a control group of 14 GiB
(in-memory), 40000 in one of 1500 MiB (killed), and 220000 read in parts in that one (in-parts).
"""
SPEC = """gpu: none
python: "3.12"
packages: [numpy]
training: {{framework: none{training}}}
targets:
  local: {{kind: local}}
  colab: {{kind: colab, runtime: "2026.07"}}
"""
GPU_SPEC = """gpu: L4
python: "3.12"
packages: [torch]
training:
  framework: torch
  precision: bf16
  method: {method}
  model: {{parameters: 7B, hidden_size: 4096, layers: 32}}
targets:
  wb: {{kind: workbench, project: my-project, zones: [us-central1-a], machine_type: {machine}}}
"""


def write_record(folder: Path, target: str = "local", **changes: Any) -> Path:
    """Write the record of a run as the monitor does."""
    document = run_record(**changes)
    document["digest"] = canonical_digest(document)
    runs = folder / f".provision/reports/spec.{target}/runs"
    runs.mkdir(parents=True, exist_ok=True)
    path = runs / "20261127T000000Z.json"
    path.write_text(to_canonical_json(document))
    return path


@pytest.mark.parametrize(("status", "peak"), [("pass", 5 * GIB), ("fail", None), (None, None)])
def test_the_peak_of_the_declared_command_counts_if_it_passed(
    status: str | None, peak: int | None
) -> None:
    path = Path(__file__).parents[1] / "reports/recorded/quickstart.json"
    document = json.loads(path.read_bytes())
    document["readings"] += [
        {"key": "command.peak_bytes", "class": "measurement", "value": 5 * GIB},
        {"key": "command.card_peak_bytes", "class": "measurement", "value": None},
    ]
    if status is not None:
        row = {**document["checks"][0], "id": "V02", "status": status}
        document["checks"].append(row)
    figures = RunFigures.from_report("report.json", Report(document))
    assert (figures.ram if figures is not None else None) == peak


def fit_of(tmp_path: Path, text: str, record: Path | None = None) -> FitResult:
    (tmp_path / "spec.yaml").write_text(text)
    return fit(tmp_path / "spec.yaml", (), record, RealSystem())


def resource_of(result: FitResult, target: str, resource: FitResource) -> ResourceFit:
    (found,) = (part for part in result.targets if part.target == target)
    return next(part for part in found.resources if part.resource is resource)


def test_a_model_by_its_id_needs_what_its_declared_sizes_need(tmp_path: Path) -> None:
    text = GPU_SPEC.format(method="full", machine="g2-standard-4")
    shape = "{parameters: 7B, hidden_size: 4096, layers: 32}"
    by_id, declared = (
        resource_of(fit_of(tmp_path, text.replace(shape, model)), "wb", FitResource.GPU)
        for model in (
            "{id: Qwen/Qwen2.5-0.5B}",
            "{parameters: 494.032768M, hidden_size: 896, layers: 24}",
        )
    )
    assert by_id.need == declared.need
    larger = text.replace(shape, "{id: Qwen/Qwen2.5-0.5B, parameters: 7B}")
    assert resource_of(fit_of(tmp_path, larger), "wb", FitResource.GPU) != by_id


def test_a_measured_peak_decides_for_every_target(tmp_path: Path) -> None:
    write_record(tmp_path, peaks__ram_bytes=15 * GIB)
    result = fit_of(tmp_path, SPEC.format(training=""))
    ram = resource_of(result, "colab", FitResource.RAM)
    assert (ram.fits, ram.need.origin) == (False, NeedOrigin.MEASURED)
    assert ram.savings == ("set `shape: high`, which has 51 GiB",)
    assert resource_of(result, "local", FitResource.RAM).need.bytes == 15 * GIB
    assert result.exit_code == 1


def test_a_peak_that_fits_is_shown_with_its_margin(tmp_path: Path) -> None:
    write_record(tmp_path, peaks__ram_bytes=10 * GIB)
    result = fit_of(tmp_path, SPEC.format(training=""))
    ram = resource_of(result, "colab", FitResource.RAM)
    assert ram.fits
    assert ram.margin == pytest.approx(2.7 * GIB, rel=0.01)
    text = view.render_text(result.targets, result.run, color=False, width=100)
    assert "fits: needs 10.0 GiB (measured), has 12.7 GiB: 2.7 GiB left" in text
    assert "Measured: python train.py" in text


def test_a_killed_run_is_a_lower_bound_and_the_estimate_stays(tmp_path: Path) -> None:
    write_record(tmp_path, peaks__ram_bytes=5 * GIB, ended__memory_kills=1)
    spec = SPEC.format(training=", data: {in_memory: 14GiB}")
    ram = resource_of(fit_of(tmp_path, spec), "colab", FitResource.RAM)
    assert (ram.need.origin, ram.need.bytes) == (NeedOrigin.ESTIMATED, 14 * GIB)
    write_record(tmp_path, peaks__ram_bytes=5 * GIB)
    ram = resource_of(fit_of(tmp_path, spec), "colab", FitResource.RAM)
    assert (ram.need.origin, ram.need.bytes) == (NeedOrigin.MEASURED, 5 * GIB)


def test_a_run_that_was_too_short_does_not_hide_a_measured_one(tmp_path: Path) -> None:
    measured = write_record(tmp_path, peaks__ram_bytes=5 * GIB)
    short = {"peaks__ram_bytes": None, "peaks__shm_bytes": None, "cards": []}
    measured.rename(measured.with_name("20261126T000000Z.json"))
    write_record(tmp_path, **short)
    result = fit_of(tmp_path, SPEC.format(training=""))
    assert resource_of(result, "colab", FitResource.RAM).need.bytes == 5 * GIB
    first = view.describe_run(result.run)
    assert first.startswith("Measured: python train.py")
    assert first.endswith("Ignored 1 newer run without a measured peak.")
    measured.with_name("20261126T000000Z.json").unlink()
    with pytest.raises(Refused) as refused:
        fit_of(tmp_path, SPEC.format(training=""))
    assert "no recorded run has a measured peak" in refused.value.why
    estimated = fit_of(tmp_path, SPEC.format(training=", data: {in_memory: 1GiB}"))
    assert view.describe_run(estimated.run).startswith("Not measured, because it ended too soon")


def test_data_that_is_read_in_parts_is_the_named_saving(tmp_path: Path) -> None:
    spec = SPEC.format(training=", data: {in_memory: 14GiB}")
    ram = resource_of(fit_of(tmp_path, spec), "colab", FitResource.RAM)
    assert ram.fits is False
    assert ram.savings[0].startswith("read the data in parts and remove `training.data.in_memory`")
    assert "saves 14.0 GiB" in ram.savings[0]
    with pytest.raises(Refused, match="the resources that this training run needs are unknown"):
        fit_of(tmp_path, SPEC.format(training=""))


def test_the_machine_that_auto_chooses_is_compared(tmp_path: Path) -> None:
    result = fit_of(tmp_path, GPU_SPEC.format(method="lora", machine="auto"))
    ram = resource_of(result, "wb", FitResource.RAM)
    assert ram.available is not None
    assert ram.available.provider == "g2-standard-4"
    larger = GPU_SPEC.format(method="lora", machine="auto") + "requires: {ram: 40GiB}\n"
    ram = resource_of(fit_of(tmp_path, larger), "wb", FitResource.RAM)
    assert ram.available is not None
    assert ram.available.bytes >= 40 * GIB


def test_gpu_memory_names_the_largest_saving(tmp_path: Path) -> None:
    gpu = resource_of(
        fit_of(tmp_path, GPU_SPEC.format(method="full", machine="g2-standard-48")),
        "wb",
        FitResource.GPU,
    )
    assert gpu.fits is False
    assert gpu.savings[0].startswith("set training.method: qlora: saves ")
    gpu = resource_of(
        fit_of(tmp_path, GPU_SPEC.format(method="qlora", machine="g2-standard-48")),
        "wb",
        FitResource.GPU,
    )
    assert gpu.fits


def test_memory_that_a_card_had_in_use_before_the_run_is_not_counted(tmp_path: Path) -> None:
    write_record(tmp_path, "wb")
    gpu = resource_of(
        fit_of(tmp_path, GPU_SPEC.format(method="qlora", machine="g2-standard-48")),
        "wb",
        FitResource.GPU,
    )
    assert (gpu.need.origin, gpu.need.bytes) == (NeedOrigin.MEASURED, 19 * GIB)


def test_weights_and_optimizer_are_named_where_they_are(tmp_path: Path) -> None:
    tensors = [
        {"name": "model", "part": "weights", "device": "gpu", "bytes": 6 * GIB},
        {"name": "model", "part": "optimizer", "device": "gpu", "bytes": 12 * GIB},
        {"name": "params", "part": "arrays", "device": "cpu", "bytes": GIB},
        {"name": "odd", "part": "weights", "device": "gpu", "bytes": "many"},
    ]
    write_record(tmp_path, "wb", tensors=tensors)
    spec = GPU_SPEC.format(method="qlora", machine="g2-standard-48")
    result = fit_of(tmp_path, spec)
    details = [
        resource_of(result, "wb", resource).need.detail
        for resource in (FitResource.GPU, FitResource.RAM, FitResource.SHM)
    ]
    assert details[0].endswith(", with weights of model (6.0 GiB), optimizer of model (12.0 GiB)")
    assert details[1].endswith(", with params (jax, 1.0 GiB)")
    assert "with" not in details[2]
    figures = dict(run_record_text.list_figures(run_record(tensors=tensors)))
    assert figures["weights and optimizer at the end, RAM"] == "params (jax, 1.0 GiB)"
    assert figures["weights and optimizer at the end, GPU"].startswith("weights of model (6.0 GiB)")


def test_an_unknown_size_is_not_called_fitting(tmp_path: Path) -> None:
    spec = SPEC.format(training="").replace('runtime: "2026.07"', "shape: high")
    write_record(tmp_path, peaks__shm_bytes=GIB)
    result = fit_of(tmp_path, spec)
    shm = resource_of(result, "colab", FitResource.SHM)
    assert (shm.available, shm.fits) == (None, None)
    (colab,) = (part for part in result.targets if part.target == "colab")
    assert colab.fits is None
    assert "NOT FULLY KNOWN" in view.render_page("spec.yaml", result.targets, result.run)


def test_a_report_gives_sizes_that_the_facts_lack_unless_it_was_edited(tmp_path: Path) -> None:
    spec = SPEC.format(training="").replace('runtime: "2026.07"', "shape: high")
    write_record(tmp_path, peaks__shm_bytes=GIB)
    recorded = Path(__file__).parents[1] / "reports/recorded/quickstart.json"
    path = tmp_path / ".provision/reports/spec.colab/report.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(recorded.read_bytes())
    shm = resource_of(fit_of(tmp_path, spec), "colab", FitResource.SHM)
    assert shm.available is not None
    assert shm.available.source.startswith("report of 2026-")
    document = json.loads(path.read_text())
    document["tier"] = "deep"
    path.write_text(json.dumps(document))
    assert resource_of(fit_of(tmp_path, spec), "colab", FitResource.SHM).available is None


def test_data_and_page_hold_the_same_numbers(tmp_path: Path) -> None:
    write_record(tmp_path, peaks__ram_bytes=15 * GIB)
    result = fit_of(tmp_path, SPEC.format(training=""))
    document = view.to_json(result.spec, result.targets, result.run)
    colab = next(part for part in document["targets"] if part["target"] == "colab")
    ram = next(part for part in colab["resources"] if part["resource"] == "ram")
    assert (ram["fits"], ram["need_bytes"], document["run"]["target"]) == (False, 15 * GIB, "here")
    page = view.render_page("<b>.yaml", result.targets, result.run)
    assert "&lt;b&gt;.yaml" in page
    assert "DOES NOT FIT" in page
    assert 'width="100.0" height="6"' in page


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "not a run record"),
        ('{"schema": "provision.capture/1"}', "not a run record"),
        ('{"schema": "provision.run/1"}', "is damaged"),
        ('{"schema": "provision.run/2"}', "written by a different version"),
    ],
)
def test_a_file_that_is_not_a_record_is_refused(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "record.json"
    path.write_text(content)
    with pytest.raises(ProvisionError, match=words):
        fit_of(tmp_path, SPEC.format(training=""), path)


def test_a_record_of_another_spec_and_machine_is_compared_and_named_as_that(bench: Bench) -> None:
    bench.spec(SPEC.format(training=""))
    limits = {"limits__ram_bytes": 2**43, "limits__container_bytes": None}
    other = write_record(bench.folder, subject__spec="keras", subject__target="local", **limits)
    done = bench.run("fit", "spec.yaml", "--run", str(other))
    assert done.returncode == 0, done.stderr
    first = " ".join(done.stdout.split("\n\n")[0].split())
    assert "target local of a different spec (keras)" in first
    assert "on a machine with 8192.0 GiB of RAM (this one has " in first
    memory = RealSystem().machine_resources(bench.folder, with_gpus=False).memory
    limits = {"limits__ram_bytes": memory, "limits__container_bytes": None}
    own = write_record(bench.folder, subject__spec="spec", subject__target="local", **limits)
    done = bench.run("fit", "spec.yaml", "--run", str(own))
    first = " ".join(done.stdout.split("\n\n")[0].split())
    assert first == "Measured: python train.py, target local, 2026-11-21T21:56:01Z."


def test_a_record_of_a_target_elsewhere_is_of_no_other_machine(tmp_path: Path) -> None:
    path = write_record(tmp_path, subject__target="colab", limits__ram_bytes=9 * GIB)
    result = fit_of(tmp_path, SPEC.format(training=""), path)
    assert result.run is not None
    assert result.run.ram_here is None
    assert "this one has" not in view.describe_run(result.run)


def test_the_gpu_of_a_record_is_named(tmp_path: Path) -> None:
    write_record(tmp_path, "wb")
    spec = GPU_SPEC.format(method="qlora", machine="g2-standard-48")
    need = resource_of(fit_of(tmp_path, spec), "wb", FitResource.GPU).need
    assert need.detail.startswith("peak of python train.py on NVIDIA L4")


@pytest.mark.parametrize(
    ("content", "says", "helps"),
    [
        (None, "cannot read", ""),
        (b"\xff\xfe\x00", "is not a run record", "run the program again"),
        (b"[1]", "is not a run record", "provision report"),
        (b'{"schema": "provision.report/1"}', "is not a run record", "provision report"),
        (
            b'{"schema": "provision.run/2"}',
            "a different version of provision",
            "update `provision`",
        ),
        (b'{"schema": "provision.run/1"}', "damaged or was changed", "run the program again"),
        ("edited", "damaged or was changed", "run the program again"),
        ("cut", "is not a run record", "run the program again"),
    ],
)
def test_a_record_that_cannot_be_used_is_refused_by_the_command(
    bench: Bench, content: bytes | str | None, says: str, helps: str
) -> None:
    bench.spec(KERAS_SPEC)
    path, whole = bench.folder / "record.json", (RUNS / "in-memory.json").read_bytes()
    changed = {"edited": whole.replace(b"14109655040", b"1410965504"), "cut": whole[:900]}
    if content is not None:
        path.write_bytes(changed[content] if isinstance(content, str) else content)
    done = bench.run("fit", "spec.yaml", "--run", "record.json")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    said = " ".join(done.stderr.split())
    assert says in said
    assert "record.json" in said
    assert helps in said


KERAS_SPEC = """gpu: none
python: "3.12"
packages: [keras==3.*, tensorflow-cpu==2.21.*]
training: {framework: keras, backend: tensorflow}
targets:
  colab: {kind: colab, runtime: "2026.07"}
"""


def fit_keras(tmp_path: Path, name: str) -> FitResult:
    """Compare a recorded run of examples/keras-memory with Colab."""
    return fit_of(tmp_path, KERAS_SPEC, RUNS / f"{name}.json")


def test_a_keras_run_with_its_data_in_memory_does_not_fit_colab(tmp_path: Path) -> None:
    result = fit_keras(tmp_path, "in-memory")
    ram = resource_of(result, "colab", FitResource.RAM)
    assert (ram.fits, result.exit_code) == (False, 1)
    assert "images (float64, 5.0 GiB)" in ram.need.detail
    parts, shorter, machine = ram.savings
    assert parts.startswith("read the data in parts (tf.data, a PyDataset, a DataLoader)")
    assert "saves at least 5.0 GiB" in parts
    assert shorter.startswith(
        "create images as float32 instead of float64: this saves at least 2.5"
    )
    assert machine.startswith("set `shape: high`")
    text = view.render_text(result.targets, result.run, color=False, width=100)
    page = (ROOT / "docs/how-to/keras-and-jax.md").read_text(encoding="utf-8")
    start = text.index("colab (colab)")
    assert text[start : text.index("  shared memory")] in page


def test_the_record_of_another_spec_is_named_as_that(tmp_path: Path) -> None:
    result = fit_keras(tmp_path, "in-memory")
    text = view.render_text(result.targets, result.run, color=False, width=100)
    assert "target local of a different spec (keras)" in text
    spec = f"name: keras\n{KERAS_SPEC}"
    own = fit_of(tmp_path, spec, RUNS / "in-memory.json")
    assert own.run is not None
    assert not own.run.is_of_other_spec


def test_a_keras_run_that_reads_its_data_in_parts_fits_colab(tmp_path: Path) -> None:
    result = fit_keras(tmp_path, "in-parts")
    ram = resource_of(result, "colab", FitResource.RAM)
    assert (ram.fits, ram.savings, result.exit_code) == (True, (), 0)
    assert ram.need.bytes < GIB


def test_the_need_of_a_killed_run_is_not_known(tmp_path: Path) -> None:
    ram = resource_of(fit_keras(tmp_path, "killed"), "colab", FitResource.RAM)
    assert (ram.fits, ram.need.is_minimum) == (None, True)
    assert "which was killed (or one of its processes was)" in ram.need.detail
    result = fit_of(tmp_path, KERAS_SPEC + "requires: {ram: 14GiB}\n", RUNS / "killed.json")
    assert resource_of(result, "colab", FitResource.RAM).fits is False


@pytest.mark.parametrize(
    ("training", "env", "counts"),
    [
        ("framework: keras, backend: tensorflow", "A: b", False),
        ("framework: keras, backend: tensorflow", 'TF_FORCE_GPU_ALLOW_GROWTH: "true"', True),
        ("framework: jax", "A: b", False),
        ("framework: jax", 'XLA_PYTHON_CLIENT_PREALLOCATE: "false"', True),
        ("framework: keras, backend: torch", "A: b", True),
    ],
)
def test_gpu_memory_that_a_framework_takes_in_advance_is_not_counted(
    tmp_path: Path, training: str, env: str, counts: bool
) -> None:
    write_record(tmp_path, "wb")
    spec = GPU_SPEC.format(method="full", machine="g2-standard-48")
    model = spec[spec.index("  framework") : spec.index("targets")]
    spec = spec.replace(f"training:\n{model}", f"training: {{{training}}}\nenv: {{{env}}}\n")
    result = fit_of(tmp_path, spec)
    resources = {part.resource for part in result.targets[0].resources}
    assert (FitResource.GPU in resources) is counts
    words = "".join(result.targets[0].not_counted)
    assert ("reserves most of a GPU in advance" in words) is not counts


@pytest.mark.skipif(sys.platform != "linux", reason="runs are recorded only on Linux")
def test_a_real_run_is_measured_and_compared(
    bench: Bench, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A program that takes 400 MB, by `fit`, `status` and the page."""
    targets = 'targets: {local: {kind: local}, colab: {kind: colab, runtime: "2026.07"}}\n'
    text = small_spec("alpha", extra=targets)
    made = apply_once(tmp_path_factory, bench, "applied-for-fit", small_spec("alpha"))
    (made.folder / "train.py").write_text(
        "import time\ndata = bytearray(400_000_000)\nfor i in range(0, len(data), 4096):\n"
        "    data[i] = 1\ntime.sleep(2.5)\n"
    )
    quick = made.run("run", "spec.yaml", "--", "python", "-c", "pass")
    assert "fit:" not in quick.stderr, "nothing was measured"
    done = made.run("run", "spec.yaml", "--", "python", "train.py")
    assert done.returncode == 0, done.stderr
    made.spec(text)
    done = made.run("fit", "spec.yaml", "--output-format", "json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["run"]["program"] == "python train.py"
    for target in told["targets"]:
        ram = next(part for part in target["resources"] if part["resource"] == "ram")
        assert 400_000_000 <= ram["need_bytes"] < 800_000_000
        assert ram["fits"]
    assert "fit: colab: RAM " in made.run("status", "spec.yaml").stderr
    page = made.run("fit", "spec.yaml", "--html", "fit.html")
    assert page.returncode == 0
    assert "FITS EVERYWHERE" in (made.folder / "fit.html").read_text()
