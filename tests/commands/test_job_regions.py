"""Jobs that a region does not run are moved to the next one, by the real command against the
emulated Vertex AI.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from provision.sandbox.serve import serve
from tests.commands.test_enterprise_killed import run as run_killed
from tests.commands.test_job_run import CODE, RUN, prepare
from tests.commands.test_vertex_job import (
    APPLY,
    SPEC,
    TWO_REGIONS,
    assert_nothing_costs,
    jobs,
    logs,
)
from tests.rig import Bench

pytest.importorskip("google.cloud.notebooks_v2")


@pytest.mark.long
def test_a_region_without_capacity_is_not_tried_again_after_a_kill(
    bench: Bench, tmp_path: Path
) -> None:
    bench.spec(TWO_REGIONS)
    log = tmp_path / "calls.txt"
    with serve(bench.folder / ".provision/sandbox", ("stockout:us-central1",), boot=False):
        assert bench.run(*APPLY).returncode == 0  # what is written once is not counted
        assert bench.run("destroy", "spec.yaml", "--sandbox", "--yes").returncode == 0
        log.write_text("")
        assert run_killed(bench, log, 0, *APPLY).returncode == 0
        calls = log.read_text().splitlines()
        _, second = [n for n, call in enumerate(calls, 1) if call.endswith("/customJobs")]
        assert bench.run("destroy", "spec.yaml", "--sandbox", "--yes").returncode == 0
        assert run_killed(bench, log, second, *APPLY).returncode == -9
        earlier = len(jobs(bench))
        again = bench.run(*APPLY)
        assert again.returncode == 0, again.stderr + logs(bench)
        assert "has no capacity for the job (tried by an interrupted command)" in again.stderr
        (last,) = jobs(bench)[earlier:]
        assert last["name"].split("/")[3] == "europe-west4"
        assert_nothing_costs(bench)


@pytest.mark.long
def test_when_all_regions_failed_the_next_command_begins_with_the_first(bench: Bench) -> None:
    bench.spec(TWO_REGIONS)
    faults = [
        word for name in ("us-central1", "europe-west4") for word in ("--fault", f"stockout:{name}")
    ]
    for _ in range(2):
        done = bench.run(*APPLY, *faults)
        assert done.returncode == 2, done.stderr
        assert "tried by an interrupted command" not in done.stderr
    regions = [job["name"].split("/")[3] for job in jobs(bench)]
    assert regions == 2 * ["us-central1", "europe-west4"]


def test_the_next_region_is_tried_after_a_stockout_and_a_lost_answer_makes_one_job(
    bench: Bench,
) -> None:
    bench.spec(TWO_REGIONS)
    faults = ("--fault", "stockout:us-central1", "--fault", "lost-answer:2")
    done = bench.run(*APPLY, *faults)
    assert done.returncode == 0, done.stderr + logs(bench)
    first, second = jobs(bench)
    assert (first["state"], second["state"]) == ("JOB_STATE_FAILED", "JOB_STATE_SUCCEEDED")
    assert second["name"].split("/")[3] == "europe-west4"
    assert done.stderr.count("the response was lost, but the job exists") == 2
    assert "us-central1: the region has no capacity for the job" in done.stderr
    assert "retried: in the next region if one lacks quota or capacity, and once" in done.stderr
    assert_nothing_costs(bench)


def regions(bench: Bench) -> list[tuple[str, str]]:
    """The region and the state of each job, in the order of their creation."""
    return [
        (job["name"].split("/")[3], job["state"].removeprefix("JOB_STATE_")) for job in jobs(bench)
    ]


@pytest.mark.long
def test_jobs_of_a_folder_share_what_they_know_of_regions(bench: Bench) -> None:
    """Only the first of two jobs tries the region without capacity, and a rerun does nothing."""
    (bench.folder / "specs").mkdir()
    for name in ("a", "b"):
        spec = TWO_REGIONS.replace("    replicas: 2\n", "")
        (bench.folder / f"specs/{name}.yaml").write_text(spec)
    words = ("apply", "specs", "--all", "--yes", "--sandbox", "--parallel", "1")
    done = bench.run(*words, "--fault", "stockout:us-central1")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "2 targets: 2 simulated"
    assert "b/cluster: us-central1: not tried: a/cluster found no capacity" in done.stderr
    store = json.loads((bench.folder / "specs/.provision/sandbox/store.json").read_bytes())
    created = sorted(store["custom_jobs"].values(), key=lambda job: str(job["createTime"]))
    found = [(job["displayName"][-9:-8], job["name"].split("/")[3]) for job in created]
    assert found == [("a", "us-central1"), ("a", "europe-west4"), ("b", "europe-west4")]
    again = bench.run(*words)
    assert again.returncode == 0, again.stderr
    assert "request: custom job" not in again.stderr


@pytest.mark.long
def test_a_job_that_ends_with_an_internal_error_is_tried_once_more(bench: Bench) -> None:
    bench.spec(SPEC)
    done = bench.run(*APPLY, "--fault", "internal-job:1")
    assert done.returncode == 0, done.stderr + logs(bench)
    assert "us-central1: internal error in Vertex AI" in done.stderr
    assert regions(bench) == [("us-central1", "FAILED"), ("us-central1", "SUCCEEDED")]
    assert_nothing_costs(bench)


@pytest.mark.long
def test_the_second_attempt_after_an_internal_error_is_in_the_next_region(bench: Bench) -> None:
    bench.spec(TWO_REGIONS)
    done = bench.run(*APPLY, "--fault", "internal-job:2")
    assert done.returncode == 2, done.stderr + logs(bench)
    assert "failed twice with an internal error in Vertex AI" in done.stderr
    assert regions(bench) == [("us-central1", "FAILED"), ("europe-west4", "FAILED")]
    assert_nothing_costs(bench)


@pytest.mark.long
def test_a_program_that_did_not_begin_is_tried_once_more(bench: Bench) -> None:
    prepare(bench)
    done = bench.run(*RUN, "--fault", "internal-job:1", "--", "python", "train.py", "0", "4")
    assert done.returncode == 4, done.stderr + logs(bench)
    assert [state for _, state in regions(bench)] == ["FAILED", "FAILED"], "its code is 4"
    assert done.stdout.count("done 0") == 1
    assert_nothing_costs(bench)


@pytest.mark.long
def test_a_program_that_was_killed_between_two_regions_goes_on_with_the_second(
    bench: Bench, tmp_path: Path
) -> None:
    prepare(bench, TWO_REGIONS + CODE)
    program = ("--", "python", "train.py", "0", "0")
    log = tmp_path / "calls.txt"
    with serve(bench.folder / ".provision/sandbox", ("stockout:us-central1",), boot=False):
        # What is written once is there before the calls are counted.
        for _ in range(2):
            log.write_text("")
            assert run_killed(bench, log, 0, *RUN, *program).returncode == 0
            assert bench.run("destroy", "spec.yaml", "--sandbox", "--yes").returncode == 0
        calls = log.read_text().splitlines()
        _, second = [n for n, call in enumerate(calls, 1) if call.endswith("/customJobs")]
        assert run_killed(bench, log, second, *RUN, *program).returncode == -9
        earlier = len(jobs(bench))
        again = bench.run(*RUN, *program)
        assert again.returncode == 0, again.stderr + logs(bench)
        assert "has no capacity for the job (tried by an interrupted command)" in again.stderr
        assert [region for region, _ in regions(bench)[earlier:]] == ["europe-west4"]
        assert_nothing_costs(bench)


def test_too_little_quota_is_refused_before_a_job_is_requested(bench: Bench) -> None:
    bench.spec(SPEC)
    done = bench.run(*APPLY, "--fault", "no-training-quota:us-central1")
    assert done.returncode == 2, done.stderr
    text = " ".join(done.stderr.split())
    assert "us-central1 has too little quota: quota custom_model_training_cpus is 0" in text
    assert "the job needs 8; quota custom_model_training_pd_ssd is 0, the job needs 200" in text
    assert "request: custom job" not in done.stderr
    prepare(bench)
    done = bench.run(*RUN, "--fault", "no-training-quota:us-central1", "--", "python", "train.py")
    assert done.returncode == 2, done.stderr
    assert "us-central1 has too little quota" in done.stderr
    assert not (bench.folder / ".provision/sandbox/replicas").exists()


@pytest.mark.long
def test_a_region_with_too_little_quota_is_left_out(bench: Bench) -> None:
    bench.spec(TWO_REGIONS)
    done = bench.run(*APPLY, "--fault", "no-training-quota:us-central1")
    assert done.returncode == 0, done.stderr + logs(bench)
    assert "no job in us-central1: quota custom_model_training_cpus is 0" in " ".join(
        (done.stdout + done.stderr).split()
    )
    assert regions(bench) == [("europe-west4", "SUCCEEDED")]
    assert_nothing_costs(bench)
