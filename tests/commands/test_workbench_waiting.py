"""What a person sees and can do while an instance is made, waited for, or fails; by the real
command line.
"""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.rig import MINOR, Bench

pytest.importorskip("google.cloud.notebooks_v2")

TARGET = """\
  {name}:
    kind: workbench
    project: my-project
    zones: [us-central1-a, us-central1-b]
    image: workbench-instances-2603-20261004-2157-rc0
    bucket: gs://my-bucket/p
    service_account: trainer@my-project.iam.gserviceaccount.com
    nat: true
    max_lifetime: 8h
"""
SPEC = f'gpu: none\npython: "{MINOR}"\npackages: [alpha]\ntraining: {{framework: none}}\ntargets:\n'


def spec(bench: Bench, *names: str, more: str = "") -> None:
    bench.spec(SPEC + "".join(TARGET.format(name=name) + more for name in names or ("wb",)))


@contextmanager
def up(bench: Bench, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A sandbox that runs beside, as in another terminal."""
    process = bench.start("sandbox", "up", "--output-format", "json", *words)
    try:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["endpoints"]
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=600)


def test_a_sandbox_that_is_up_already_is_used_and_boots_the_device(bench: Bench) -> None:
    spec(bench)
    with up(bench) as other:
        done = bench.run("apply", "spec.yaml", "--sandbox", "--yes", timeout=600)
        assert done.returncode in (0, 3), done.stderr  # 3: this machine cannot isolate one
        assert (
            "SANDBOX: using the sandbox that is already running "
            f"(process {other.pid}: provision sandbox up" in done.stderr
        )
        refused = bench.run("apply", "spec.yaml", "--sandbox", "--yes", "--fault", "hang")
        assert refused.returncode == 2
        assert f"process {other.pid}: provision sandbox up" in refused.stderr
        assert bench.run("destroy", "spec.yaml", "--sandbox", "--yes").returncode == 0


@pytest.mark.long(after=1)
@pytest.mark.parametrize(
    ("ending", "code", "word"),
    [(signal.SIGTERM, 143, "terminated"), (signal.SIGINT, 130, "interrupted")],
)
def test_an_interrupted_wait_ends_with_what_still_runs_and_how_to_go_on(
    bench: Bench, ending: signal.Signals, code: int, word: str
) -> None:
    spec(bench)
    process = bench.start("apply", "spec.yaml", "--sandbox", "--yes", "--fault", "silent-device")
    assert process.stderr is not None
    seen = []
    while not (seen and "is ACTIVE" in seen[-1]):
        seen.append(process.stderr.readline())
        assert seen[-1], "".join(seen)
    process.send_signal(ending)
    _, said = process.communicate(timeout=600)
    assert process.returncode == code, said
    first, second, third, fourth = said.splitlines()[-4:]
    assert first == f"{word}: completed steps are recorded; run the command again to continue"
    assert second.startswith("provision-spec-wb-")
    assert "may exist" in second or second.endswith(
        " in us-central1-a keeps running, in the sandbox at no cost"
    )
    assert "--sandbox" in third
    assert fourth == "remove it: provision destroy spec.yaml --sandbox"
    assert bench.run("destroy", "spec.yaml", "--sandbox", "--yes").returncode == 0


@pytest.mark.long
def test_of_all_targets_the_others_go_on_after_one_that_fails(bench: Bench) -> None:
    spec(bench, "one", "two")
    bench.spec(
        (bench.folder / "spec.yaml")
        .read_text()
        .replace("[us-central1-a, us-central1-b]", "[us-central1-a]", 1)
    )
    done = bench.run(
        "apply",
        "spec.yaml",
        "--sandbox",
        "--yes",
        "--all",
        "--detach",
        "--fault",
        "stockout:us-central1-a",
        "--output-format",
        "json",
    )
    assert done.returncode == 2, done.stderr
    told = json.loads(done.stdout)
    assert [(one["target"], one["exit_code"]) for one in told["failed"]] == [("one", 2)]
    assert [(one["target"], one["zone"]) for one in told["waiting"]] == [("two", "us-central1-b")]
    assert "target one:\nerror: the zone currently has no capacity for this machine" in done.stderr
    assert bench.run("orphans", "spec.yaml", "--sandbox").returncode == 0


def test_a_fault_of_a_card_is_refused_where_there_is_none(bench: Bench) -> None:
    spec(bench)
    done = bench.run("apply", "spec.yaml", "--sandbox", "--yes", "--fault", "wrong-gpu")
    assert (done.returncode, "error: --fault wrong-gpu needs a GPU" in done.stderr) == (
        2,
        True,
    )
    assert "request:" not in done.stderr


@pytest.mark.long
def test_an_instance_of_a_sandbox_is_shown_without_commands_of_gcloud(bench: Bench) -> None:
    spec(bench)
    made = bench.run("apply", "spec.yaml", "--sandbox", "--yes", "--detach")
    assert made.returncode == 3, made.stderr
    for words in (("open", "spec.yaml"), ("open", "spec.yaml", "--output-format", "json")):
        done = bench.run(*words, "--sandbox")
        assert (done.returncode, "gcloud" in done.stdout) == (0, False), done.stderr
    elsewhere = bench.run("destroy", "spec.yaml", "--yes")
    assert (elsewhere.returncode, "add --sandbox" in elsewhere.stderr) == (0, True), (
        elsewhere.stderr
    )
    (bench.own / "sandbox/state/state.json").unlink()
    for words in (("orphans", "spec.yaml"), ("orphans", "spec.yaml", "--output-format", "json")):
        done = bench.run(*words, "--sandbox")
        assert (
            done.returncode,
            "gcloud" in done.stdout,
            "rm -r .provision/sandbox" in done.stdout,
        ) == (1, False, True), done.stderr
    stuck = bench.run("apply", "spec.yaml", "--sandbox", "--yes", "--fault", "permission")
    assert "SANDBOX: the gcloud commands above are for Google Cloud" in stuck.stderr


@pytest.mark.long
def test_a_detached_run_of_a_sandbox_is_attached_where_it_was(bench: Bench) -> None:
    spec(bench)
    made = bench.run("apply", "spec.yaml", "--sandbox", "--yes", "--detach")
    assert (made.returncode, "provision sandbox up --folder .provision/sandbox" in made.stdout) == (
        3,
        True,
    ), made.stderr
    done = bench.run("attach", "spec.yaml", "--sandbox")
    assert done.returncode in (0, 3), done.stderr  # 3: this machine cannot isolate one
    assert ("SIMULATED" in done.stdout) is (done.returncode == 0)
    assert done.returncode == 0 or "this machine cannot isolate it" in done.stderr
