"""The wait for a job that never gets machines, and for several jobs at once."""

from __future__ import annotations

import threading
import time
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from provision.adapters.google.custom_jobs import JobUnplaced
from provision.adapters.google.endpoints import Endpoints
from provision.adapters.google.job_polling import await_job
from provision.adapters.google.report_polling import PollingClock
from provision.adapters.google.shared_client import SharedGoogleClient
from provision.adapters.google.vertex import VertexApi
from provision.effects.vertex import AwaitJob
from provision.sandbox.serve import serve
from tests.adapters.cloud.conftest import Begin
from tests.sandbox.test_custom_jobs import body

REGION = "projects/my-project/locations/us-central1"
LIMIT_S, PENDING_S = 5400, 2700


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ("pending-job", "it is still pending"),
        ("queued-job", "it is still queued; other jobs may use its quota"),
    ],
)
def test_a_job_without_machines_is_given_up_in_its_region(
    begin: Begin, tmp_path: Path, fault: str, why: str
) -> None:
    cloud, lines = begin(fault), list[str]()
    replicas: tuple[Any, ...] = (("workerpool0-0",), tmp_path)
    cloud.services.vertex.create_job(REGION, body())
    effect = AwaitJob(REGION, "abc", "gs://my-bucket/run/", *replicas, LIMIT_S, PENDING_S)
    clock = PollingClock(now=cloud.clock, sleep=cloud.clock.sleep)
    with pytest.raises(JobUnplaced, match="had no machines after 45 minutes") as caught:
        await_job(effect, cloud.services, clock, lambda line: lines.append(str(line)))
    assert caught.value.why == why
    assert "use another region" in caught.value.hint
    assert PENDING_S <= cloud.clock.now < PENDING_S + 60
    assert why.removeprefix("it is still ") in lines[0]


class CountingVertex(VertexApi):
    """Vertex AI over REST, which counts the lists of jobs."""

    lists = 0

    def list_jobs(self, parent: str, *labels: str) -> Any:
        self.lists += 1
        return super().list_jobs(parent, *labels)


class CountingClient(SharedGoogleClient):
    @cached_property
    def vertex(self) -> VertexApi:
        return CountingVertex(self.rest, self._endpoints.aiplatform, self.policy)


def test_jobs_of_several_threads_are_followed_by_one_list_for_each_interval(
    tmp_path: Path,
) -> None:
    """Also of jobs that began at different times; each thread gets its own job."""
    jobs, waits = 5, 4
    with serve(tmp_path / "sandbox", ("pending-job",)) as sandbox:
        client = CountingClient(Endpoints.from_addresses(sandbox.endpoints), None)
        vertex = client.vertex
        clock, lines, errors = PollingClock(interval_s=1.0), list[str](), list[JobUnplaced]()

        def follow(number: int) -> None:
            time.sleep(0.15 * number)
            job = {**body(), "labels": {"provision-run": f"n{number}"}}
            name = vertex.create_job(REGION, job)["name"].rpartition("/")[2]
            effect = AwaitJob(
                REGION, f"n{number}", "gs://my-bucket/r/", ("workerpool0-0",), tmp_path, 60, waits
            )
            try:
                await_job(effect, client, clock, lambda line: lines.append(f"{name} {line}"))
            except JobUnplaced as error:
                errors.append(error)

        threads = [threading.Thread(target=follow, args=(number,)) for number in range(jobs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert isinstance(vertex, CountingVertex)
        assert len(errors) == jobs
        assert len(lines) == jobs
        assert all(f"custom job {line.split()[0]}:" in line for line in lines), "each its own job"
        # The first read of each job, and then one list for each interval; 25 reads without sharing.
        assert vertex.lists <= jobs + waits + 2
