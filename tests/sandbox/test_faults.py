"""Everything that can be made to go wrong, as a client meets it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import google.api_core.exceptions as said
import pytest
from google.cloud import notebooks_v2 as nb
from google.protobuf import json_format
from googleapiclient.errors import HttpError

from provision.errors import UsageError
from provision.sandbox.booter import Booter
from provision.sandbox.faults import FAULT_KINDS, Faults
from provision.sandbox.scripted_errors import TRIGGERS
from tests.sandbox.test_custom_jobs import L4, POOL, CustomJobs
from tests.sandbox.test_custom_jobs import body as custom_job
from tests.sandbox.test_execution_jobs import Jobs
from tests.sandbox.test_vertex import vertex
from tests.sandbox_rig import BODY, NAME, PROJECT, SOON, ZONE, Clients, clients

REGION = f"{PROJECT}/locations/us-central1"
JOB: dict[str, Any] = {
    "displayName": "Run",
    "gcsNotebookSource": {"uri": "gs://my-bucket/in.ipynb"},
    "customEnvironmentSpec": {"machineSpec": {"machineType": "e2-standard-4"}},
    "serviceAccount": "trainer@my-project.iam.gserviceaccount.com",
    "gcsOutputUri": "gs://my-bucket/out",
}
MESSAGE = nb.Instance(json_format.ParseDict(BODY, nb.Instance.pb(nb.Instance())))


def refused(call: Any) -> dict[str, Any]:
    """Return the error body that a REST call is refused with."""
    with pytest.raises(HttpError) as caught:
        call.execute()
    return dict(json.loads(caught.value.content)["error"])


@contextmanager
def ending(sandbox: Clients) -> Iterator[Any]:
    """Yield Google's client of Vertex AI, and close its connections."""
    built = vertex(sandbox)
    yield built
    built.close()


def creation(sandbox: Clients, zone: str = ZONE) -> Any:
    return sandbox.rest.instances().create(parent=zone, instanceId="one", body=BODY)


def outcome(sandbox: Clients, zone: str = ZONE) -> dict[str, Any]:
    """Return the error that a creation ends with."""
    return dict(sandbox.done(creation(sandbox, zone).execute())["error"])


def test_stockout(tmp_path: Path) -> None:
    with clients(tmp_path, "stockout:us-central1-a", "stockout:us-central1-b") as sandbox:
        error = outcome(sandbox)
        assert error["code"] == 8
        assert (
            "The zone 'projects/my-project/zones/us-central1-a' does not have enough "
            "resources available to fulfill the request." in error["message"]
        )
        (info,) = error["details"]
        assert (info["reason"], info["domain"]) == (
            "resource_availability",
            "compute.googleapis.com",
        )
        assert info["metadata"]["attachment"] == "nvidia-l4=1"
        left = info["metadata"]["zonesAvailable"].split(",")
        assert left
        assert not {"us-central1-a", "us-central1-b"}.intersection(left)
        other = ZONE.replace("us-central1-a", left[0])
        assert "error" not in sandbox.done(creation(sandbox, other).execute())


def test_stockout_over_grpc_keeps_its_details(tmp_path: Path) -> None:
    with clients(tmp_path, "stockout:us-central1-a") as sandbox:
        with pytest.raises(
            said.ResourceExhausted, match="does not have enough resources"
        ) as caught:
            sandbox.grpc.create_instance(parent=ZONE, instance_id="one", instance=MESSAGE).result(
                timeout=600, polling=SOON
            )
        (packed,) = caught.value.response.error.details
        assert packed.type_url == "type.googleapis.com/google.rpc.ErrorInfo"


def test_stockout_at_a_start(tmp_path: Path) -> None:
    with clients(tmp_path) as sandbox:
        sandbox.made()
        sandbox.done(sandbox.rest.instances().stop(name=NAME, body={}).execute())
    with clients(tmp_path, "stockout:us-central1-a") as sandbox:
        assert (
            sandbox.done(sandbox.rest.instances().start(name=NAME, body={}).execute())["error"][
                "code"
            ]
            == 8
        )
        assert sandbox.rest.instances().get(name=NAME).execute()["state"] == "STOPPED"


def test_quota_of_a_region(tmp_path: Path) -> None:
    with clients(tmp_path, "quota:us-central1") as sandbox:
        assert outcome(sandbox) == {
            "code": 7,
            "message": "Quota 'NVIDIA_L4_GPUS' exceeded.  Limit: 0.0 in region us-central1.",
        }
        with pytest.raises(said.PermissionDenied, match="Quota 'NVIDIA_L4_GPUS' exceeded"):
            sandbox.grpc.create_instance(parent=ZONE, instance_id="two", instance=MESSAGE).result(
                timeout=600, polling=SOON
            )
        assert "error" not in sandbox.done(
            creation(sandbox, f"{PROJECT}/locations/us-west1-a").execute()
        )
        quotas = sandbox.http("GET", "/compute/v1/projects/my-project/regions/us-central1")[1][
            "quotas"
        ]
        assert {"metric": "NVIDIA_L4_GPUS", "limit": 0.0, "usage": 2.0} in quotas


def test_quota_of_all_regions(tmp_path: Path) -> None:
    with clients(tmp_path, "quota-global") as sandbox:
        assert outcome(sandbox) == {
            "code": 7,
            "message": "Quota 'GPUS_ALL_REGIONS' exceeded.  Limit: 0.0 globally.",
        }
        assert sandbox.http("GET", "/compute/v1/projects/my-project")[1]["quotas"][0] == {
            "metric": "GPUS_ALL_REGIONS",
            "limit": 0.0,
            "usage": 1.0,
        }


def test_exists(tmp_path: Path) -> None:
    with clients(tmp_path, "exists") as sandbox:
        error = refused(creation(sandbox))
        assert (error["code"], error["status"]) == (409, "ALREADY_EXISTS")
        assert sandbox.grpc.get_instance(name=NAME).labels["owner"] == "somebody-else"
        with pytest.raises(said.AlreadyExists):
            sandbox.grpc.create_instance(parent=ZONE, instance_id="two", instance=MESSAGE)


def test_busy(tmp_path: Path) -> None:
    with clients(tmp_path, "busy:2") as sandbox:
        error = refused(creation(sandbox))
        assert (error["code"], error["status"]) == (409, "ABORTED")
        assert "unable to queue the operation" in error["message"]
        assert sandbox.rest.instances().list(parent=ZONE).execute() == {}, (
            "what only looks is not refused"
        )
        with pytest.raises(said.Aborted, match="unable to queue the operation"):
            sandbox.grpc.create_instance(parent=ZONE, instance_id="one", instance=MESSAGE)
        sandbox.made()


def test_rate(tmp_path: Path) -> None:
    with clients(tmp_path, "rate:2") as sandbox:
        status, body, headers = sandbox.http("GET", f"/v2/{ZONE}/instances")
        assert (status, headers["Retry-After"], body["error"]["status"]) == (
            429,
            "1",
            "RESOURCE_EXHAUSTED",
        )
        with pytest.raises(said.ResourceExhausted) as caught:
            sandbox.grpc.get_instance(name=NAME)
        assert caught.value.reason == "RATE_LIMIT_EXCEEDED"
        assert sandbox.http("GET", f"/v2/{ZONE}/instances")[0] == 200


@pytest.mark.parametrize(
    ("fault", "http", "status", "grpc"),
    [
        ("error-500", 500, "INTERNAL", said.InternalServerError),
        ("unavailable", 503, "UNAVAILABLE", said.ServiceUnavailable),
    ],
)
def test_errors_of_the_server(
    tmp_path: Path, fault: str, http: int, status: str, grpc: type[Exception]
) -> None:
    with clients(tmp_path, f"{fault}:2") as sandbox:
        error = refused(sandbox.rest.instances().list(parent=ZONE))
        assert (error["code"], error["status"]) == (http, status)
        with pytest.raises(grpc):
            sandbox.grpc.get_instance(name=NAME)
        sandbox.made()


def test_token_expiry_is_told_once(tmp_path: Path) -> None:
    with clients(tmp_path, "token-expiry:2") as sandbox:
        assert (
            sandbox.http("GET", f"/v2/{ZONE}/instances", headers={"Authorization": "Bearer x"})[0]
            == 200
        )
        status, body, headers = sandbox.http(
            "GET", f"/v2/{ZONE}/instances", headers={"Authorization": "Bearer x"}
        )
        assert (status, body["error"]["status"], body["error"]["details"][0]["reason"]) == (
            401,
            "UNAUTHENTICATED",
            "ACCESS_TOKEN_EXPIRED",
        )
        assert "invalid_token" in headers["WWW-Authenticate"]
        assert sandbox.http("GET", f"/v2/{ZONE}/instances")[0] == 200
    with clients(tmp_path, "token-expiry") as sandbox:
        with pytest.raises(said.Unauthenticated):
            sandbox.grpc.get_instance(name=NAME)
        sandbox.made()


def test_hang(tmp_path: Path) -> None:
    with clients(tmp_path, "hang") as sandbox:
        begun = creation(sandbox).execute()
        for _ in range(5):
            assert "done" not in sandbox.rest.operations().get(name=begun["name"]).execute()
        assert sandbox.rest.instances().get(name=NAME).execute()["state"] == "PROVISIONING"


def test_lost_operation(tmp_path: Path) -> None:
    with clients(tmp_path, "lost-operation") as sandbox:
        begun = sandbox.grpc.create_instance(parent=ZONE, instance_id="one", instance=MESSAGE)
        with pytest.raises(said.NotFound):
            begun.result(timeout=600, polling=SOON)
        assert [sandbox.grpc.get_instance(name=NAME).state.name for _ in range(2)] == [
            "PROVISIONING",
            "ACTIVE",
        ]


def test_stuck_provisioning(tmp_path: Path) -> None:
    with clients(tmp_path, "stuck-provisioning") as sandbox:
        assert "error" not in sandbox.done(creation(sandbox).execute())
        for _ in range(5):
            assert sandbox.rest.instances().get(name=NAME).execute()["state"] == "PROVISIONING"


def test_hidden(tmp_path: Path) -> None:
    with clients(tmp_path, "hidden:2") as sandbox:
        sandbox.done(creation(sandbox).execute())
        assert [sandbox.http("GET", f"/v2/{NAME}")[0] for _ in range(3)] == [404, 404, 200]


@pytest.mark.parametrize(
    ("fault", "code", "words"),
    [
        ("create-internal", 13, "an internal error has occurred"),
        ("create-aborted", 10, "Failed to perform tenant project creation"),
    ],
)
def test_creations_that_end_badly(tmp_path: Path, fault: str, code: int, words: str) -> None:
    with clients(tmp_path, fault) as sandbox:
        assert outcome(sandbox) == {"code": code, "message": words}


@pytest.mark.parametrize(
    ("fault", "http", "words"),
    [
        (
            "act-as",
            403,
            (
                "needs iam.serviceAccounts.ActAs (Service Account User) permission on VM "
                "Service Account"
            ),
        ),
        ("secure-boot", 412, "Secure Boot is not enabled in the 'shielded_instance_config' field"),
    ],
)
def test_creations_that_are_refused(tmp_path: Path, fault: str, http: int, words: str) -> None:
    with clients(tmp_path, fault) as sandbox:
        error = refused(creation(sandbox))
        assert error["code"] == http
        assert words in error["message"]
        assert sandbox.http("GET", f"/v2/{NAME}")[0] == 404


def test_what_a_policy_asks_for_is_taken(tmp_path: Path) -> None:
    with clients(tmp_path, "secure-boot", "external-ip") as sandbox:
        private = {
            **BODY,
            "gceSetup": {**BODY["gceSetup"], "shieldedInstanceConfig": {"enableSecureBoot": True}},
        }
        public = {**private, "gceSetup": {**private["gceSetup"], "disablePublicIp": False}}
        error = refused(sandbox.rest.instances().create(parent=ZONE, instanceId="one", body=public))
        assert error["code"] == 412
        assert "constraints/compute.vmExternalIpAccess violated" in error["message"]
        sandbox.made(body=private)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [("permission", "IAM_PERMISSION_DENIED"), ("api-disabled", "SERVICE_DISABLED")],
)
def test_every_request_is_refused(tmp_path: Path, fault: str, reason: str) -> None:
    with clients(tmp_path, fault) as sandbox:
        assert refused(creation(sandbox))["details"][0]["reason"] == reason
        with pytest.raises(said.PermissionDenied) as caught:
            sandbox.grpc.get_instance(name=NAME)
        assert caught.value.reason == reason


def test_no_bucket(tmp_path: Path) -> None:
    with clients(tmp_path, "no-bucket") as sandbox:
        assert (
            sandbox.http("POST", "/upload/storage/v1/b/mine/o?uploadType=media&name=a", b"x")[0]
            == 404
        )
        assert sandbox.http("POST", "/storage/v1/b?project=my-project", {"name": "mine"})[0] == 200
        assert (
            sandbox.http("POST", "/upload/storage/v1/b/mine/o?uploadType=media&name=a", b"x")[0]
            == 200
        )


def test_no_guest_attributes(tmp_path: Path) -> None:
    with clients(tmp_path, "no-guest-attributes") as sandbox:
        sandbox.made()
        status, body, _ = sandbox.http(
            "GET",
            "/compute/v1/projects/my-project/zones/us-central1-a/instances/one/getGuestAttributes?queryPath=provision/",
        )
        assert status == 403
        assert "constraints/compute.disableGuestAttributesAccess" in body["error"]["message"]


@pytest.mark.parametrize("fault", ["silent-device", "script-failure", "wrong-gpu", "forged-report"])
def test_faults_of_the_device_are_told_to_whoever_boots_it(tmp_path: Path, fault: str) -> None:
    told: list[Faults] = []

    class Listening(Booter):
        def start(self, store: Any, name: str, endpoints: Any, faults: Faults) -> None:
            told.append(faults)

        def close(self) -> None:
            return

        def stop(self, name: str) -> None:
            """Nothing runs."""

    with clients(tmp_path, fault, booter=Listening()) as sandbox:
        sandbox.made()
    (faults,) = told
    assert {name for name in FAULT_KINDS if faults.has(name)} == {fault}


def test_the_location_of_buckets(tmp_path: Path) -> None:
    bucket = "/storage/v1/b/my-bucket"
    with clients(tmp_path / "any") as sandbox:
        sandbox.http("POST", "/upload" + bucket + "/o?uploadType=media&name=x", b"x")
        assert "location" not in sandbox.http("GET", bucket)[1], "the first upload created it"
        named = json.dumps({"name": "named", "location": "us-east1"}).encode()
        assert sandbox.http("POST", "/storage/v1/b", named)[1]["location"] == "US-EAST1"
        default = sandbox.http("POST", "/storage/v1/b", b'{"name": "other"}')[1]
        assert (default["location"], default["locationType"]) == ("US", "multi-region")
    for location, kind in (("eu", "multi-region"), ("nam4", "dual-region"), ("us-west1", "region")):
        with clients(tmp_path / location, f"bucket-location:{location}") as sandbox:
            about = sandbox.http("GET", bucket)[1]
            assert (about["location"], about["locationType"]) == (location.upper(), kind)


@pytest.mark.parametrize("way", ["template", "job"])
def test_an_answer_that_is_lost(tmp_path: Path, way: str) -> None:
    with clients(tmp_path, "lost-answer", "pending-job") as sandbox, ending(sandbox) as vertex:
        locations = vertex.projects().locations()
        calls = {
            "template": locations.notebookRuntimeTemplates().create(
                parent=REGION, notebookRuntimeTemplateId="one", body={"displayName": "One"}
            ),
            "job": locations.notebookExecutionJobs().create(
                parent=REGION, notebookExecutionJobId="one", body=JOB
            ),
        }
        assert refused(calls[way])["code"] == 503
        assert refused(calls[way])["code"] == 409, "the first request was done"


def test_a_job_that_stays_pending(tmp_path: Path) -> None:
    with clients(tmp_path, "pending-job") as sandbox, ending(sandbox) as vertex:
        assert sandbox.store is not None
        jobs = vertex.projects().locations().notebookExecutionJobs()
        sandbox.store.put_object("my-bucket", "in.ipynb", b"{}")
        jobs.create(parent=REGION, notebookExecutionJobId="one", body=JOB).execute()
        name = f"{REGION}/notebookExecutionJobs/one"
        assert jobs.get(name=name).execute()["jobState"] == "JOB_STATE_PENDING"
        jobs.delete(name=name).execute()
        assert sandbox.store.snapshot()["executions"] == {}


WRITE = """
import os, urllib.request
address = os.environ["STORAGE_EMULATOR_HOST"] + "/upload/storage/v1/b/my-bucket/o?name=x"
urllib.request.urlopen(urllib.request.Request(address + "&uploadType=media", b"x", method="POST"))
"""


@pytest.mark.long(after=1)
@pytest.mark.parametrize(
    ("fault", "cell", "words"),
    [
        ("dead-kernel", "import time; time.sleep(60)", "the kernel died"),
        ("no-bucket-write", WRITE, "HTTPError: HTTP Error 403: Forbidden"),
    ],
)
def test_a_kernel_that_dies_and_one_that_may_not_write(
    tmp_path: Path, fault: str, cell: str, words: str
) -> None:
    with clients(tmp_path, fault) as sandbox:
        jobs = Jobs(sandbox)
        jobs.start(cell)
        job = jobs.ended()
        jobs.built.close()
    assert (job["jobState"], job["status"]["message"]) == ("JOB_STATE_FAILED", words)


def test_custom_jobs_that_go_wrong(tmp_path: Path) -> None:
    europe, south = (REGION.replace("us-central1", name) for name in ("europe-west4", "us-south1"))
    faults = ("stockout:us-central1", "quota:europe-west4", "lost-answer")
    with clients(tmp_path, *faults) as sandbox:
        jobs = CustomJobs(sandbox)
        with pytest.raises(HttpError, match="connection was closed"):
            jobs.create(custom_job())
        (job,) = jobs.rest.list(parent=REGION).execute()["customJobs"]
        assert job["error"]["message"].startswith("Resources are insufficient in region: us-centr")
        with pytest.raises(HttpError, match="quota metrics exceed quota limits") as caught:
            jobs.create(custom_job(workerPoolSpecs=[{**POOL, "machineSpec": L4}]), europe)
        assert "custom_model_training_nvidia_l4_gpus" in str(caught.value)
        jobs.built.close()
    faults = ("worker-lost:workerpool1-0", "replica-missing:workerpool1-1")
    with clients(tmp_path / "replicas", *faults) as sandbox:
        jobs = CustomJobs(sandbox)
        absent = "--fault replica-missing:workerpool1-1: the job does not have this replica; it has"
        with pytest.raises(HttpError, match=absent):
            jobs.create(custom_job(workers=1), south)
        assert jobs.rest.list(parent=south).execute() == {}
        name = jobs.create(custom_job("import time; time.sleep(60)", workers=2), south)["name"]
        message = jobs.ended(name)["error"]["message"]
        assert "workerpool1-0 exited with a non-zero status of 137" in message
        assert sandbox.store is not None
        alone = jobs.create(custom_job("print('here')", workers=2), south)["name"]
        assert jobs.ended(alone)["state"] == "JOB_STATE_SUCCEEDED"
        missing = list(sandbox.store.folder.glob("replicas/*/workerpool1-1"))
        assert len(missing) == 2
        assert not any((folder / "log.txt").exists() for folder in missing)
        jobs.built.close()
    for fault in ("pending-job", "queued-job"):
        with clients(tmp_path / fault, "cancelled-by-other", fault) as sandbox:
            jobs = CustomJobs(sandbox)
            name = jobs.create(custom_job("import time; time.sleep(60)"))["name"]
            state = jobs.rest.get(name=name).execute()["state"]
            assert state == f"JOB_STATE_{fault.removesuffix('-job').upper()}"
            jobs.rest.cancel(name=name, body={}).execute()
            assert jobs.ended(name)["state"] == "JOB_STATE_CANCELLED"
            jobs.built.close()
    with clients(tmp_path / "third", "cancelled-by-other") as sandbox:
        jobs = CustomJobs(sandbox)
        ended = jobs.run(custom_job("import time; time.sleep(60)"))
        assert (ended["state"], ended["error"]["code"]) == ("JOB_STATE_CANCELLED", 1)
        jobs.built.close()


def test_output_that_may_not_be_read(tmp_path: Path) -> None:
    with clients(tmp_path, "no-logs") as sandbox:
        assert sandbox.store is not None
        codes = []
        for name in ("output-001-00000.txt", "status.json"):
            sandbox.store.put_object("my-bucket", f"run/{name}", b"{}")
            codes.append(
                sandbox.http("GET", f"/storage/v1/b/my-bucket/o/run%2F{name}?alt=media")[0]
            )
        assert codes == [403, 200]


def test_every_fault_has_a_test() -> None:
    commands = Path(__file__).parent.with_name("commands")
    own = [
        Path(__file__).with_name(name)
        for name in ("test_custom_jobs.py", "test_preempted_replica.py")
    ]
    tested = ("test_job_regions.py", "test_job_image.py", "test_job_wheels.py")
    files = (Path(__file__), *own, *(commands / name for name in tested))
    text = "".join(file.read_text() for file in files)
    assert [name for name in FAULT_KINDS if f'"{name}' not in text] == []


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("stockuot:us-central1-a", "unknown fault"),
        ("nothing", "unknown fault"),
        ("stockout", "this fault requires a zone"),
        ("quota:", "this fault requires a region"),
        ("hang:1", "this fault takes no argument"),
        ("worker-lost:3", "'3' is not the name of a replica"),
        ("worker-preempted:worker1:step", "'worker1' is not the name of a replica"),
        ("busy:x", "'x' is not a positive number"),
        ("busy:0", "'0' is not a positive number"),
        ("busy:", "'' is not a positive number"),
    ],
)
def test_a_script_that_is_wrong(script: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        Faults((script,))
    assert caught.value.hint


def test_faults_count_down() -> None:
    faults = Faults(("busy:2", "token-expiry:2", "stockout:a", "stockout:b"))
    assert [faults.consume("busy") for _ in range(3)] == [True, True, False]
    assert [faults.is_nth_request("token-expiry") for _ in range(3)] == [False, True, False]
    assert not faults.consume("rate")
    assert not faults.is_nth_request("rate")
    assert faults.locations("stockout") == {"a", "b"}
    assert faults.has("stockout", "a")
    assert not faults.has("stockout", "c")


def test_every_fault_is_on_its_page() -> None:
    page = (Path(__file__).parents[2] / "docs/how-to/sandbox.md").read_text()
    for name, kind in FAULT_KINDS.items():
        assert f"| {kind.meaning} |" in page, name
        assert f"| `{name}" in page


MET = {"code": 7, "message": "Quota 'NVIDIA_P4_GPUS' exceeded.  Limit: 1.0 in region us-central1."}


def written(folder: Path, **words: Any) -> str:
    """Write an error to a file, and return the script that names it."""
    (folder / "error.json").write_text(json.dumps(words))
    return f"error:{folder / 'error.json'}"


def test_an_error_from_a_file_ends_a_creation_in_its_zone(tmp_path: Path) -> None:
    with clients(
        tmp_path, written(tmp_path, **MET, at="operation", zone="us-central1-b", times=1)
    ) as sandbox:
        assert outcome(sandbox, ZONE.replace("-a", "-b")) == MET
        sandbox.made()


def test_an_error_from_a_file_keeps_all_its_words(tmp_path: Path) -> None:
    info = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "R",
        "domain": "d",
        "metadata": {"a": "b"},
    }
    script = written(
        tmp_path,
        **MET,
        at="create",
        http=412,
        reason="conditionNotMet",
        details=[info],
        headers={"Retry-After": "7"},
    )
    with clients(tmp_path, script) as sandbox:
        status, body, headers = sandbox.http("POST", f"/v2/{ZONE}/instances?instanceId=one", BODY)
        assert (status, headers["Retry-After"]) == (412, "7")
        assert body["error"]["errors"] == [
            {"message": MET["message"], "domain": "global", "reason": "conditionNotMet"}
        ]
        assert body["error"]["details"] == [info]
        with pytest.raises(said.PermissionDenied) as caught:
            sandbox.grpc.create_instance(parent=ZONE, instance_id="two", instance=MESSAGE)
        assert (caught.value.reason, caught.value.metadata) == ("R", {"a": "b"})


@pytest.mark.parametrize("at", ["request", "update", "upload"])
def test_an_error_from_a_file_comes_at_its_moment(tmp_path: Path, at: str) -> None:
    with clients(tmp_path, written(tmp_path, **MET, at=at)) as sandbox:
        if at == "request":
            assert refused(creation(sandbox))["message"] == MET["message"]
        elif at == "upload":
            assert (
                sandbox.http("POST", "/upload/storage/v1/b/mine/o?uploadType=media&name=a", b"x")[0]
                == 403
            )
        else:
            sandbox.made()
            change = sandbox.rest.instances().patch(
                name=NAME, updateMask="labels", body={"labels": {"a": "b"}}
            )
            assert sandbox.done(change.execute())["error"] == MET


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ({**MET, "at": "nowhere"}, "its `at` must be one of request, create"),
        (MET, "its `at` must be one of"),
        ({"at": "create", "code": 0, "message": "x"}, "it must have a code"),
        ({"at": "create", "code": True, "message": "x"}, "its code is not a number"),
        ({"at": "create", "code": 7}, "and a message"),
        ({**MET, "at": "create", "status": "X"}, "the unknown field 'status'"),
        ({**MET, "at": "create", "details": [{}]}, "must have an @type"),
    ],
)
def test_a_file_that_holds_no_error(tmp_path: Path, words: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError, match="the file does not describe an error to return") as caught:
        Faults((written(tmp_path, **words),))
    assert why in caught.value.why
    assert '"at": "operation"' in caught.value.hint


@pytest.mark.parametrize("text", ["", "[]", "[" * 5000, "\x00"])
def test_a_file_that_is_no_json_object(tmp_path: Path, text: str) -> None:
    (tmp_path / "error.json").write_text(text)
    with pytest.raises(UsageError) as caught:
        Faults((f"error:{tmp_path / 'error.json'}",))
    assert caught.value.why == "it is not a JSON object"


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        Faults((f"error:{tmp_path / 'nowhere.json'}",))


def test_every_moment_is_on_its_page() -> None:
    page = (Path(__file__).parents[2] / "docs/how-to/sandbox.md").read_text()
    assert [at for at, meaning in TRIGGERS.items() if f"| `{at}` | {meaning} |" not in page] == []
