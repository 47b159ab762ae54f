"""Notebook execution jobs as the sandbox runs them: in a real kernel, on a machine of their own."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from googleapiclient.errors import HttpError

from tests.sandbox.test_vertex import NAME, REGION, TEMPLATE, vertex
from tests.sandbox_rig import Clients, clients

JOB = f"{REGION}/notebookExecutionJobs/run-1"
BODY: dict[str, Any] = {
    "displayName": "Run",
    "gcsNotebookSource": {"uri": "gs://my-bucket/in.ipynb"},
    "notebookRuntimeTemplateResourceName": NAME,
    "serviceAccount": "trainer@my-project.iam.gserviceaccount.com",
    "gcsOutputUri": "gs://my-bucket/out/",
    "executionTimeout": "300s",
    "labels": {"provision": "1"},
}
IMAGE = {
    "project": "cloud-notebooks-managed",
    "name": "workbench-instances-2603-20261004-2157-rc0",
}
SHIELD = {"enableSecureBoot": True}
ENVIRONMENT: dict[str, Any] = {
    "machineSpec": {
        "machineType": "g2-standard-4",
        "acceleratorType": "NVIDIA_L4",
        "acceleratorCount": 1,
    },
    "persistentDiskSpec": {"diskType": "pd-balanced", "diskSizeGb": "100"},
    "networkSpec": {"enableInternetAccess": True},
}
ON_AN_IMAGE: dict[str, Any] = {
    "notebookRuntimeTemplateResourceName": None,
    "customEnvironmentSpec": ENVIRONMENT,
    "workbenchRuntime": {"vmImage": IMAGE},
    "kernelName": "python3",
}


def notebook(*cells: str) -> bytes:
    return json.dumps(
        {
            "cells": [
                {
                    "cell_type": "code",
                    "id": f"c{number}",
                    "metadata": {},
                    "source": text,
                    "outputs": [],
                    "execution_count": None,
                }
                for number, text in enumerate(cells)
            ],
            "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3"}},
            "nbformat": 4,
            "nbformat_minor": 5,
        }
    ).encode()


class Jobs:
    """Google's client, with a template and a notebook."""

    def __init__(self, sandbox: Clients) -> None:
        self.sandbox, self.built = sandbox, vertex(sandbox)
        self.locations = self.built.projects().locations()
        self.jobs = self.locations.notebookExecutionJobs()
        templates = self.locations.notebookRuntimeTemplates()
        templates.create(parent=REGION, notebookRuntimeTemplateId="one", body=TEMPLATE).execute()

    def start(self, *cells: str, **changes: Any) -> dict[str, Any]:
        assert self.sandbox.store is not None
        self.sandbox.store.put_object("my-bucket", "in.ipynb", notebook(*cells))
        body = {key: value for key, value in {**BODY, **changes}.items() if value is not None}
        call = self.jobs.create(parent=REGION, notebookExecutionJobId="run-1", body=body)
        return dict(call.execute())

    def ended(self, limit_s: float = 120) -> dict[str, Any]:
        end = time.monotonic() + limit_s
        while time.monotonic() < end:
            job = self.jobs.get(name=JOB).execute()
            if job["jobState"] not in ("JOB_STATE_PENDING", "JOB_STATE_RUNNING"):
                return dict(job)
            time.sleep(0.1)
        raise AssertionError(job)


@pytest.fixture
def jobs(sandbox: Clients) -> Iterator[Jobs]:
    made = Jobs(sandbox)
    yield made
    made.built.close()


def test_a_notebook_runs_and_its_copy_is_in_the_bucket(jobs: Jobs) -> None:
    operation = jobs.start("import os\nprint(os.environ['VERTEX_PRODUCT'], 6 * 7)")
    assert operation["done"], "it is done when the job exists, not when it has ended"
    job = jobs.ended()
    assert (job["jobState"], job["status"]) == ("JOB_STATE_SUCCEEDED", {})
    store = jobs.sandbox.store
    assert store is not None
    (written,) = store.objects("my-bucket", "out/")
    held = store.object("my-bucket", written["name"])
    assert held is not None
    assert "COLAB_ENTERPRISE 42" in held.content.decode()
    listed = jobs.jobs.list(parent=REGION).execute()["notebookExecutionJobs"]
    assert [one["name"] for one in listed] == [JOB]


@pytest.mark.long(after=1)
@pytest.mark.parametrize(
    ("cells", "changes", "words"),
    [
        (["1 / 0", "print('never')"], {}, "ZeroDivisionError"),
        (["import os; os._exit(3)"], {}, "the kernel died"),
        (["import time; time.sleep(600)"], {"executionTimeout": "2s"}, "did not finish within 2 s"),
    ],
)
def test_a_notebook_that_fails(
    jobs: Jobs, cells: list[str], changes: dict[str, Any], words: str
) -> None:
    jobs.start(*cells, **changes)
    job = jobs.ended()
    assert job["jobState"] == "JOB_STATE_FAILED"
    assert words in job["status"]["message"]


@pytest.mark.long
def test_deleting_ends_the_machine(jobs: Jobs, tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    program = f"import os, time; open({str(mark)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    jobs.start(program)
    end = time.monotonic() + 60
    while not (mark.exists() and mark.read_text()) and time.monotonic() < end:
        time.sleep(0.05)
    pid = int(mark.read_text())
    assert jobs.jobs.delete(name=JOB).execute()["done"]
    while Path(f"/proc/{pid}").exists() and time.monotonic() < end:
        time.sleep(0.05)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    with pytest.raises(HttpError, match="404"):
        jobs.jobs.get(name=JOB).execute()


def test_what_a_notebook_installs_stays_on_its_machine(jobs: Jobs) -> None:
    jobs.start("import sys\nassert 'executions' in sys.prefix, sys.prefix")
    assert jobs.ended()["jobState"] == "JOB_STATE_SUCCEEDED"


@pytest.mark.parametrize(
    ("changes", "status", "words"),
    [
        ({"executionUser": "me@example.com"}, 400, "Exactly one of executionUser"),
        ({"serviceAccount": None}, 400, "Exactly one of executionUser"),
        ({"gcsNotebookSource": None}, 400, "Exactly one of directNotebookSource"),
        ({"gcsOutputUri": None}, 400, "gcs_output_uri"),
        ({"gcsOutputUri": "my-bucket"}, 400, "gcs_output_uri"),
        ({"displayName": None}, 400, "display_name"),
        ({"executionTimeout": "1h"}, 400, "(Duration)"),
        ({"jobState": "JOB_STATE_RUNNING"}, 400, "output only"),
        ({"labels": {"A": "1"}}, 400, "Invalid label"),
        ({"notebookRuntimeTemplateResourceName": f"{NAME}-none"}, 404, "was not found"),
    ],
)
def test_a_job_that_the_service_would_refuse(
    jobs: Jobs, changes: dict[str, Any], status: int, words: str
) -> None:
    with pytest.raises(HttpError) as caught:
        jobs.start("1", **changes)
    assert caught.value.status_code == status
    assert words in str(caught.value)
    assert jobs.jobs.list(parent=REGION).execute() == {}


@pytest.mark.long
def test_a_job_on_the_image_of_an_instance(jobs: Jobs) -> None:
    own = {**ENVIRONMENT, "shieldedInstanceConfig": SHIELD}
    program = "import os\nassert os.environ['VERTEX_PRODUCT'] == 'WORKBENCH_INSTANCE'"
    jobs.start(program, **{**ON_AN_IMAGE, "customEnvironmentSpec": own})
    job = jobs.ended()
    assert job["jobState"] == "JOB_STATE_SUCCEEDED", job
    assert job["customEnvironmentSpec"] == ENVIRONMENT, "the service does not return the shield"
    assert (job["kernelName"], "workbenchRuntime" in job) == ("python3", False)


@pytest.mark.long
def test_a_machine_of_colab_without_a_template(jobs: Jobs) -> None:
    program = "import os\nassert os.environ['VERTEX_PRODUCT'] == 'COLAB_ENTERPRISE'"
    jobs.start(program, **{**ON_AN_IMAGE, "workbenchRuntime": None})
    assert jobs.ended()["jobState"] == "JOB_STATE_SUCCEEDED"


def machine(**changes: Any) -> dict[str, Any]:
    return {"customEnvironmentSpec": {**ENVIRONMENT, **changes}}


def image(**changes: Any) -> dict[str, Any]:
    own = {key: value for key, value in {**IMAGE, **changes}.items() if value is not None}
    return {"workbenchRuntime": {"vmImage": own}}


@pytest.mark.parametrize(
    ("changes", "status", "words"),
    [
        ({"notebookRuntimeTemplateResourceName": NAME}, 400, "Exactly one of notebookRuntimeT"),
        ({"customEnvironmentSpec": None}, 400, "Exactly one of notebookRuntimeTemplate"),
        (machine(machineSpec={"machineType": "e9-huge"}), 400, "'e9-huge' is not supported"),
        (machine(machineSpec={"machineType": "g2-standard-4"}), 400, "needs its accelerator"),
        (
            machine(machineSpec={**ENVIRONMENT["machineSpec"], "acceleratorCount": 7}),
            400,
            "7 x NVIDIA_L4 cannot be used",
        ),
        (machine(machineSpec={"acceleratorType": "NVIDIA_L9"}), 400, "(Enum)"),
        (machine(persistentDiskSpec={"diskSizeGb": "100"}), 400, "'disk_type' is required"),
        (machine(persistentDiskSpec={"diskType": "PD_SSD"}), 400, "Disk type 'PD_SSD'"),
        (
            machine(persistentDiskSpec={"diskType": "pd-ssd", "diskSizeGb": "1"}),
            400,
            "'disk_size_gb' must be from 10",
        ),
        (machine(networkSpec={"network": "default"}), 400, "not a full name"),
        (
            machine(networkSpec={"subnetwork": "projects/p/regions/europe-west4/subnetworks/s"}),
            400,
            "not in region us-central1",
        ),
        (machine(bootDisk={}), 400, "Unknown name"),
        (machine(shieldedInstanceConfig={"secureBoot": True}), 400, "Unknown name"),
        (image(project=None), 400, "project' is required"),
        (image(name=None), 400, "Exactly one of name, family"),
        (image(family="workbench-instances"), 400, "Exactly one of name, family"),
        (image(tag="latest"), 400, "Unknown name"),
        (
            {"workbenchRuntime": {"vmImage": IMAGE, "customContainerImage": {"repository": "r"}}},
            400,
            "Exactly one of vmImage, customContainerImage",
        ),
        (
            {"workbenchRuntime": {"customContainerImage": {"repository": "r"}}},
            501,
            "does not run jobs with customContainerImage",
        ),
        (
            {"executionUser": "me@example.com", "serviceAccount": None},
            400,
            "only supported by Colab runtimes",
        ),
        (
            {"customEnvironmentSpec": None, "notebookRuntimeTemplateResourceName": NAME},
            400,
            "needs a custom_environment_spec",
        ),
    ],
)
def test_a_job_on_an_image_that_the_service_would_refuse(
    jobs: Jobs, changes: dict[str, Any], status: int, words: str
) -> None:
    with pytest.raises(HttpError) as caught:
        jobs.start("1", **{**ON_AN_IMAGE, **changes})
    assert caught.value.status_code == status
    assert words in str(caught.value)
    assert jobs.jobs.list(parent=REGION).execute() == {}


@pytest.mark.parametrize(
    ("fault", "words"), [("act-as", "actAs"), ("quota:us-central1", "Quota 'CPUS'")]
)
def test_faults_of_a_creation(tmp_path: Path, fault: str, words: str) -> None:
    with clients(tmp_path, fault) as broken, pytest.raises(HttpError, match=words):
        Jobs(broken).start("1")


def test_a_stockout_ends_the_job(tmp_path: Path) -> None:
    with clients(tmp_path, "stockout:us-central1") as broken:
        jobs = Jobs(broken)
        jobs.start("1")
        assert "No available zone" in jobs.ended()["status"]["message"]


@pytest.mark.long
def test_a_job_goes_on_in_the_next_process(tmp_path: Path) -> None:
    with clients(tmp_path / "sandbox") as first:
        Jobs(first).start("import time; time.sleep(3)")
        time.sleep(0.5)
    with clients(tmp_path / "sandbox") as second:
        built = vertex(second)
        jobs = built.projects().locations().notebookExecutionJobs()
        end = time.monotonic() + 60
        while (job := jobs.get(name=JOB).execute())["jobState"] == "JOB_STATE_RUNNING":
            assert time.monotonic() < end
            time.sleep(0.1)
        assert job["jobState"] == "JOB_STATE_SUCCEEDED"
        built.close()
