"""The wait for a job that never gets machines, with a clock that costs no time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from provision.adapters.google.custom_jobs import JobUnplaced
from provision.adapters.google.job_polling import await_job
from provision.adapters.google.report_polling import PollingClock
from provision.effects.vertex import AwaitJob
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
