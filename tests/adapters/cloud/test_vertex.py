"""Vertex AI over gRPC and over REST: the same resources, refusals and faults, and which way a body
takes.
"""

from __future__ import annotations

import contextlib
import copy
import importlib
import json
import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.auth.credentials import AnonymousCredentials

from provision.adapters.diagnostic_log import log
from provision.adapters.google.client import GoogleClient
from provision.adapters.google.endpoints import Endpoints
from provision.adapters.google.errors import CloudError
from provision.adapters.google.grpc_messages import to_message, to_rest_resource
from provision.adapters.google.rest import RestClient
from provision.adapters.google.vertex import VertexApi
from provision.adapters.google.vertex_grpc import GrpcVertex, is_installed, message_type
from provision.errors import ProvisionError
from provision.lean_import import skip_package_init
from provision.sandbox.discovery import VERTEX, VERTEX_PREFIX, find_discovery_document
from provision.sandbox.lifecycle import Delays
from provision.sandbox.request_validation import validate_body
from provision.sandbox.serve import Sandbox, serve
from tests.adapters.cloud.conftest import Clock

REGION = "projects/my-project/locations/us-central1"
TEMPLATES, JOBS = "notebookRuntimeTemplates", "notebookExecutionJobs"
TEMPLATE: dict[str, Any] = {
    "displayName": "One",
    "description": "All that a template may have",
    "labels": {"provision": "1"},
    "machineSpec": {
        "machineType": "g2-standard-8",
        "acceleratorType": "NVIDIA_L4",
        "acceleratorCount": 1,
    },
    "dataPersistentDiskSpec": {"diskType": "pd-ssd", "diskSizeGb": "200"},
    "networkSpec": {
        "enableInternetAccess": True,
        "network": "projects/1/global/networks/n",
        "subnetwork": "projects/1/regions/us-central1/subnetworks/s",
    },
    "idleShutdownConfig": {"idleTimeout": "3600s"},
    "eucConfig": {"eucDisabled": True},
    "shieldedVmConfig": {"enableSecureBoot": True},
    "networkTags": ["a", "b"],
    "encryptionSpec": {"kmsKeyName": "projects/p/locations/l/keyRings/r/cryptoKeys/k"},
    "softwareConfig": {
        "env": [{"name": "A", "value": "1"}],
        "colabImage": {"releaseName": "py312"},
    },
}
LEAST = {"displayName": "Least"}
RESERVED = {
    **TEMPLATE,
    "reservationAffinity": {
        "consumeReservationType": "RESERVATION_SPECIFIC",
        "key": "compute.googleapis.com/reservation-name",
        "values": ["projects/p/zones/us-central1-a/reservations/r"],
    },
}
JOB: dict[str, Any] = {
    "displayName": "Run",
    "gcsNotebookSource": {"uri": "gs://my-bucket/in.ipynb", "generation": "1"},
    "notebookRuntimeTemplateResourceName": f"{REGION}/{TEMPLATES}/one",
    "serviceAccount": "trainer@my-project.iam.gserviceaccount.com",
    "gcsOutputUri": "gs://my-bucket/out/",
    "executionTimeout": "300s",
    "kernelName": "python3",
    "labels": {"provision": "1"},
}
ON_IMAGE: dict[str, Any] = {
    **{key: value for key, value in JOB.items() if not key.startswith("notebookRuntime")},
    "customEnvironmentSpec": {
        "machineSpec": {"machineType": "n1-standard-4"},
        "persistentDiskSpec": {"diskType": "pd-ssd", "diskSizeGb": "100"},
        "networkSpec": {"enableInternetAccess": True},
    },
    "workbenchRuntime": {},
}
VM_IMAGE = {
    **ON_IMAGE,
    "workbenchRuntime": {"vmImage": {"project": "p", "family": "workbench-instances"}},
}
BODIES: dict[str, tuple[str, dict[str, Any], str]] = {
    "template": (TEMPLATES, TEMPLATE, "grpc"),
    "least": (TEMPLATES, LEAST, "grpc"),
    "reservation": (TEMPLATES, RESERVED, "rest"),
    "unknown field": (TEMPLATES, {**LEAST, "nonsense": 1}, "rest"),
    "unknown card": (TEMPLATES, {**LEAST, "machineSpec": {"acceleratorType": "X"}}, "rest"),
    "invalid duration": (TEMPLATES, {"idleShutdownConfig": {"idleTimeout": "1h"}}, "rest"),
    "job": (JOBS, JOB, "grpc"),
    "job on an image": (JOBS, ON_IMAGE, "grpc"),
    "job on a named image": (JOBS, VM_IMAGE, "rest"),
    "job with a shielded machine": (
        JOBS,
        {**ON_IMAGE, "customEnvironmentSpec": {"shieldedInstanceConfig": {"enableVtpm": True}}},
        "rest",
    ),
}
"""A collection, a body, and the way that it takes."""


class Ways:
    """One sandbox and its client over each way; their clock costs no time."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox, self.clock = sandbox, Clock()
        endpoints = Endpoints.from_addresses(sandbox.endpoints)
        self.grpc, self.rest = (
            GoogleClient(endpoints, self.clock.pace(retry_limit_s=5.0), only_rest=only).vertex
            for only in (False, True)
        )
        assert type(self.grpc) is GrpcVertex
        assert type(self.rest) is VertexApi

    @property
    def both(self) -> tuple[VertexApi, VertexApi]:
        return self.grpc, self.rest


@pytest.fixture
def ways(tmp_path: Path) -> Iterator[Ways]:
    with serve(tmp_path / "sandbox") as sandbox:
        yield Ways(sandbox)


class Lines(logging.Handler):
    """The lines of the log with -v."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())

    def ways(self) -> set[str]:
        """The ways that calls took."""
        return {"grpc" if line.startswith("gRPC call") else "rest" for line in self.calls()}

    def calls(self) -> list[str]:
        return [line for line in self.lines if re.match(r"gRPC call|[A-Z]+ http", line)]


@pytest.fixture
def logged() -> Iterator[Lines]:
    log.reset()
    handler = Lines()
    log.attach(handler, logging.INFO, ())
    yield handler
    log.reset()


def steady(found: Any) -> Any:
    """Return a resource without what differs from one to the next: times, tags, operations."""
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME", json.dumps(found, sort_keys=True))
    text = re.sub(r'"etag": "\w+"', '"etag": ""', text)
    return json.loads(re.sub(r"operations/\d+", "operations/N", text))


def test_both_ways_return_the_same_templates(ways: Ways, logged: Lines) -> None:
    name, seen = f"{REGION}/{TEMPLATES}/one", []
    for writer, reader in (ways.both, ways.both[::-1]):
        started = writer.start_creation(name, TEMPLATE)
        created = writer.get(name)
        assert created == reader.get(name) or steady(created) == steady(reader.get(name))
        changed = writer.update(
            name,
            {"displayName": "Two", "softwareConfig": {"env": [{"name": "B", "value": "2"}]}},
            "display_name,softwareConfig.env,software_config.colab_image.release_name",
        )
        assert steady(changed) == steady(reader.get(name))
        listed = writer.list(REGION, TEMPLATES)
        assert steady(listed) == steady(reader.list(REGION, TEMPLATES)) == [steady(changed)]
        done = reader.operation(started["name"])
        ended = writer.start_deletion(name)
        gone = [
            vertex.get(name) or vertex.start_deletion(name) or vertex.list(REGION, TEMPLATES)
            for vertex in ways.both
        ]
        operations = [steady(operation) for operation in (started, done, ended)]
        seen.append([*operations, steady(created), steady(changed), gone])
    assert seen[0] == seen[1]
    _, done, ended, created, changed, gone = seen[0]
    assert (done["done"], ended["done"], gone) == (True, True, [(), ()])
    assert done["response"]["@type"].endswith("aiplatform.v1.NotebookRuntimeTemplate")
    assert ended["metadata"]["@type"].endswith("aiplatform.v1.DeleteOperationMetadata")
    assert created["machineSpec"] == TEMPLATE["machineSpec"]
    assert changed["softwareConfig"] == {"env": [{"name": "B", "value": "2"}], "colabImage": {}}
    assert logged.ways() == {"grpc", "rest"}
    assert not [line for line in logged.lines if line.startswith("REST ")], "gRPC has it all"


def test_both_ways_return_the_same_jobs(tmp_path: Path) -> None:
    seen = []
    # The fault ends a job at once, so no kernel starts.
    with serve(tmp_path / "sandbox", ("stockout:us-central1",)) as sandbox:
        ways = Ways(sandbox)
        assert sandbox.store is not None
        sandbox.store.put_object("my-bucket", "in.ipynb", b"{}")
        ways.rest.create(f"{REGION}/{TEMPLATES}/one", TEMPLATE, lambda _: None)
        for writer, short in zip(ways.both, "gr", strict=True):
            name = f"{REGION}/{JOBS}/{short}"
            started = writer.start_creation(name, JOB)
            failed = [steady(vertex.get(name)) for vertex in ways.both]
            with sandbox.store.edit_data() as data:
                stored = dict(data["executions"][name])
                data["executions"][name] |= {"jobState": "JOB_STATE_SUCCEEDED", "status": {}}
            done = [steady(vertex.get(name)) for vertex in ways.both]
            lists = [steady(vertex.list(REGION, JOBS)) for vertex in ways.both]
            assert (failed[0], done[0], lists[0]) == (failed[1], done[1], lists[1])
            assert lists[0] == [done[0]]
            ended = writer.start_deletion(name)
            assert [vertex.get(name) for vertex in ways.both] == [None, None]
            text = json.dumps([stored, failed[0], done[0], started, ended])
            seen.append(steady(json.loads(text.replace(name, "NAME"))))
    assert seen[0] == seen[1]
    _, failed_job, done_job, started_job, ended_job = seen[0]
    assert failed_job["status"]["code"] == 8
    assert "No available zone found" in failed_job["status"]["message"]
    assert {key: failed_job[key] for key in JOB} == JOB
    assert (done_job["jobState"], done_job["status"]) == ("JOB_STATE_SUCCEEDED", {})
    assert started_job["response"]["@type"].endswith("aiplatform.v1.NotebookExecutionJob")
    assert ended_job["metadata"]["@type"].endswith("aiplatform.v1.DeleteOperationMetadata")


def test_a_list_has_all_pages(ways: Ways) -> None:
    assert ways.sandbox.store is not None
    ways.rest.create(f"{REGION}/{TEMPLATES}/first", LEAST, lambda _: None)
    with ways.sandbox.store.edit_data() as data:
        ((name, body),) = data["templates"].items()
        for number in range(150):
            data["templates"][f"{name}{number}"] = {**body, "name": f"{name}{number}"}
    lists = [ways.grpc.list(REGION, TEMPLATES), ways.rest.list(REGION, TEMPLATES)]
    assert [len(found) for found in lists] == [151, 151]
    assert steady(lists[0]) == steady(lists[1])


@pytest.mark.parametrize("which", BODIES)
def test_which_way_a_body_takes(ways: Ways, logged: Lines, which: str) -> None:
    collection, body, way = BODIES[which]
    assert is_installed()
    message = to_message(body, message_type(collection))
    assert (message is not None) is (way == "grpc")
    with contextlib.suppress(CloudError):
        ways.grpc.start_creation(f"{REGION}/{collection}/x", body)
    assert logged.ways() == {way}
    assert ("REST for" in logged.lines[0]) is (way == "rest")


@pytest.mark.parametrize("which", [which for which in BODIES if BODIES[which][2] == "grpc"])
def test_a_body_is_the_same_after_a_way_through_messages(which: str) -> None:
    collection, body, _ = BODIES[which]
    assert to_rest_resource(to_message(body, message_type(collection))) == body


@pytest.mark.parametrize(
    ("collection", "body", "name"),
    [
        (TEMPLATES, TEMPLATE, "NotebookRuntimeTemplate"),
        (TEMPLATES, RESERVED, "NotebookRuntimeTemplate"),
        (JOBS, JOB, "NotebookExecutionJob"),
        (JOBS, VM_IMAGE, "NotebookExecutionJob"),
    ],
)
def test_a_body_is_valid_by_the_discovery_document(
    collection: str, body: dict[str, Any], name: str
) -> None:
    assert validate_body(body, f"{VERTEX_PREFIX}{name}", collection, VERTEX)


def test_what_the_messages_lack() -> None:
    """When google-cloud-aiplatform has more, less goes over REST, and its page says so."""
    found = find_discovery_document(VERTEX)
    assert found is not None
    schemas = json.loads(found.read_bytes())["schemas"]
    lacks = {}
    for collection, name in (
        (TEMPLATES, "NotebookRuntimeTemplate"),
        (JOBS, "NotebookExecutionJob"),
    ):
        message = message_type(collection)
        have = {field.json_name for field in message.pb(message()).DESCRIPTOR.fields}
        lacks[name] = sorted(set(schemas[f"{VERTEX_PREFIX}{name}"]["properties"]) - have)
    assert lacks == {"NotebookRuntimeTemplate": ["reservationAffinity"], "NotebookExecutionJob": []}


def test_reads_go_over_rest_after_something_without_a_name(ways: Ways, logged: Lines) -> None:
    name = f"{REGION}/{TEMPLATES}/one"
    ways.grpc.create(name, RESERVED, lambda _: None)
    assert ways.grpc.get(name) == ways.rest.get(name)
    assert (ways.grpc.get(name) or {})["reservationAffinity"] == RESERVED["reservationAffinity"]
    assert [line for line in logged.lines if line.startswith("REST from now on")] == [
        f"REST from now on: the gRPC messages lack a field or value of {name}"
    ]
    logged.lines.clear()
    assert ways.grpc.list(REGION, TEMPLATES) == ways.rest.list(REGION, TEMPLATES)
    assert logged.ways() == {"rest"}


@pytest.mark.parametrize("call", ["list", "update"])
def test_a_first_call_that_returns_something_without_a_name(ways: Ways, call: str) -> None:
    name = f"{REGION}/{TEMPLATES}/one"
    ways.rest.create(name, RESERVED, lambda _: None)
    shown: Any = None
    if call == "list":
        (shown,) = ways.grpc.list(REGION, TEMPLATES)
    else:
        shown = ways.grpc.update(name, {"displayName": "Two"}, "display_name")
        assert shown["displayName"] == "Two"
    assert shown == ways.rest.get(name)


def failure_of(vertex: VertexApi, call: Any) -> tuple[Any, ...]:
    """Return what a person learns of a refusal; a number of REST is not one of gRPC."""
    with pytest.raises(CloudError) as raised:
        call(vertex)
    failure = raised.value.failure
    why = re.sub(r"\(([A-Z_]+), (HTTP|code) [^)]*\)", r"(\1)", failure.why)
    return failure.kind, failure.scope, failure.what, why, failure.hint, failure.retry_after_s


def creation(change: dict[str, Any], base: dict[str, Any], collection: str) -> Any:
    def create(vertex: VertexApi) -> Any:
        body = copy.deepcopy(base)
        for key, value in change.items():
            body[key] = {**body[key], **value} if isinstance(body.get(key), dict) else value
        return vertex.start_creation(f"{REGION}/{collection}/x", body)

    return create


REFUSALS: dict[str, tuple[Any, str]] = {
    **{
        words: (creation(change, TEMPLATE, TEMPLATES), words)
        for change, words in (
            ({"displayName": ""}, "'display_name' is required"),
            ({"nonsense": 1}, "Cannot find field"),
            ({"createTime": "2026-01-01T00:00:00Z"}, "output only"),
            ({"machineSpec": {"machineType": "n9-big"}}, "'n9-big' is not supported"),
            ({"machineSpec": {"acceleratorType": "NVIDIA_TESLA_L4"}}, "(Enum)"),
            ({"machineSpec": {"acceleratorCount": 3}}, "cannot be used with"),
            ({"dataPersistentDiskSpec": {"diskType": "PD_SSD"}}, "'PD_SSD' is not supported"),
            ({"dataPersistentDiskSpec": {"diskSizeGb": "9"}}, "from 10 to 65536"),
            ({"dataPersistentDiskSpec": {"diskSizeGb": "ten"}}, "(TYPE_INT64)"),
            ({"idleShutdownConfig": {"idleTimeout": "599s"}}, "from 600s to 86400s"),
            ({"idleShutdownConfig": {"idleTimeout": "1h"}}, "(Duration)"),
            ({"labels": {"A": "b"}}, "Invalid label"),
            ({"softwareConfig": {"env": [{"name": "a-b", "value": "1"}]}}, "variable 'a-b'"),
            ({"reservationAffinity": {"consumeReservationType": "X"}}, "reservation_affinity"),
        )
    },
    **{
        words: (creation(change, JOB, JOBS), words)
        for change, words in (
            ({"executionUser": "me@example.com"}, "Exactly one of executionUser"),
            ({"gcsOutputUri": "my-bucket"}, "gcs_output_uri"),
            ({"jobState": "JOB_STATE_RUNNING"}, "'notebook_execution_job.job_state' is output"),
            ({}, "notebookRuntimeTemplates/one' was not found"),
        )
    },
    "region": (
        lambda vertex: vertex.get(f"projects/p/locations/moon-east1/{JOBS}/x"),
        "moon-east1",
    ),
    "id": (lambda vertex: vertex.start_creation(f"{REGION}/{TEMPLATES}/X", LEAST), "_id 'X'"),
    "mask": (lambda vertex: vertex.update(f"{REGION}/{TEMPLATES}/mine", {}, "labels"), "'labels'"),
    "no mask": (lambda vertex: vertex.update(f"{REGION}/{TEMPLATES}/mine", {}, ""), "update_mask"),
    "exists": (
        lambda vertex: vertex.start_creation(f"{REGION}/{TEMPLATES}/mine", LEAST),
        "already exists",
    ),
    "missing": (
        lambda vertex: vertex.update(f"{REGION}/{TEMPLATES}/none", LEAST, "display_name"),
        "'projects/my-project/locations/us-central1/notebookRuntimeTemplates/none' was not found",
    ),
}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ways]:
    """A sandbox with a template, for calls that change nothing."""
    with serve(tmp_path_factory.mktemp("shared")) as sandbox:
        ways = Ways(sandbox)
        ways.rest.create(f"{REGION}/{TEMPLATES}/mine", LEAST, lambda _: None)
        yield ways


@pytest.mark.parametrize("which", REFUSALS)
def test_both_ways_are_refused_with_the_same_words(shared: Ways, which: str) -> None:
    call, words = REFUSALS[which]
    over_grpc, over_rest = (failure_of(vertex, call) for vertex in shared.both)
    assert over_grpc == over_rest
    assert words in over_grpc[3]


@pytest.mark.parametrize("name", ["projects/p/locations/evil.example/x/y", f"{REGION}/../x/y"])
def test_a_name_that_leads_elsewhere_is_not_sent(shared: Ways, name: str, logged: Lines) -> None:
    for vertex in shared.both:
        with pytest.raises(ProvisionError, match="is not a"):
            vertex.operation(name)
    assert logged.calls() == []


NO_FAILURE = ("", "", "", "")
FAULTS: dict[str, tuple[str, ...]] = {
    **{fault: (fault,) * 4 for fault in ("permission", "api-disabled")},
    **{f"{fault}:99": (fault,) * 4 for fault in ("rate", "unavailable")},
    **dict.fromkeys(("rate:2", "unavailable:1", "error-500:1", "busy:1"), NO_FAILURE),
    **dict.fromkeys(("token-expiry:1", "token-expiry:2", "lost-operation"), NO_FAILURE),
    "stockout:us-central1": NO_FAILURE,  # the job itself fails
    "exists": ("exists", "", "", ""),
    "act-as": ("", "act-as", "", ""),
    "quota:us-central1": ("", "quota", "", ""),
    "no-bucket": ("", "not-found", "", ""),
    "hang": ("slow", "slow", "", "slow"),
}
"""What becomes of four calls with a fault: kinds of failures, "" for none."""


@pytest.mark.parametrize("fault", FAULTS)
def test_both_ways_meet_the_same_faults(tmp_path: Path, fault: str) -> None:
    template, job = f"{REGION}/{TEMPLATES}/one", f"{REGION}/{JOBS}/one"
    calls: tuple[Any, ...] = (
        lambda vertex: vertex.create(template, TEMPLATE, lambda _: None),
        lambda vertex: vertex.create(job, JOB, lambda _: None),
        lambda vertex: vertex.get(job),
        lambda vertex: vertex.delete(template, lambda _: None),
    )
    seen: list[list[Any]] = []
    for number in (0, 1):
        # Each has its own sandbox: faults are counted.
        with serve(tmp_path / str(number), (fault,)) as sandbox:
            ways, outcomes, kinds = Ways(sandbox), [], []
            for call in calls:
                kinds.append("")
                try:
                    outcomes.append(steady(call(ways.both[number])))
                except CloudError as error:
                    failure = error.failure
                    kinds[-1] = failure.kind
                    outcomes.append((failure.kind, failure.scope, failure.what, failure.hint))
            seen.append([outcomes, ways.clock.waits])
    assert seen[0] == seen[1]
    assert tuple(kinds) == FAULTS[fault]


def test_an_operation_is_waited_for(tmp_path: Path) -> None:
    name = f"{REGION}/{TEMPLATES}/one"
    with serve(tmp_path / "sandbox", delays=Delays(operation=0.3)) as sandbox:
        for vertex in Ways(sandbox).both:
            started = vertex.start_creation(name, LEAST)
            running = vertex.operation(started["name"]) or {}
            assert "done" not in started
            assert steady(running) == steady(started)
            vertex.start_deletion(name)


def test_each_region_has_its_own_address() -> None:
    policy = Clock().pace()
    rest = RestClient(AnonymousCredentials(), policy, loopback=False)
    vertex = GrpcVertex(rest, Endpoints(), policy)
    regions = ("us-central1", "europe-west4")
    assert [vertex._client(region).api_endpoint for region in regions] == [
        "us-central1-aiplatform.googleapis.com:443",
        "europe-west4-aiplatform.googleapis.com:443",
    ]
    assert vertex._client("us-central1") is vertex._client("us-central1")


LOADED = """
import json, sys
from provision.adapters.google.client import GoogleClient
from provision.adapters.google.endpoints import Endpoints
before = sorted(sys.modules)
endpoints = Endpoints.from_addresses(json.loads(sys.argv[1]))
vertex = GoogleClient(endpoints, only_rest=sys.argv[2] == "rest").vertex
region = "projects/my-project/locations/us-central1"
name = region + "/notebookRuntimeTemplates/t"
vertex.create(name, {"displayName": "x"}, lambda line: None)
assert vertex.get(name)["displayName"] == "x"
vertex.delete(name, lambda line: None)
vertex.list(region, "notebookExecutionJobs")
print(json.dumps([type(vertex).__name__, before, sorted(sys.modules)]))
"""
SERVICE = {
    "services.notebook_service",
    *(f"services.notebook_service.{name}" for name in ("async_client", "client", "pagers")),
    "services.notebook_service.transports",
    *(
        f"services.notebook_service.transports.{name}"
        for name in ("base", "grpc", "grpc_asyncio", "rest", "rest_base")
    ),
}
TYPES = {
    f"types.{name}"
    for name in (
        *("accelerator_type", "encryption_spec", "env_var", "job_state", "machine_resources"),
        *("network_spec", "notebook_euc_config", "notebook_execution_job"),
        *("notebook_idle_shutdown_config", "notebook_runtime", "notebook_runtime_template_ref"),
        *("notebook_service", "notebook_software_config", "operation", "reservation_affinity"),
    )
}


def run(program: str, *words: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-c", program, *words],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_what_is_loaded(tmp_path: Path) -> None:
    with serve(tmp_path / "sandbox") as sandbox:
        loaded = {way: run(LOADED, json.dumps(sandbox.endpoints), way) for way in ("grpc", "rest")}
    kind, before, after = loaded["grpc"]
    assert kind == "GrpcVertex"
    assert not {"google.auth", "grpc", "requests", "google.protobuf"} & set(before)
    package = "google.cloud.aiplatform_v1"
    of_package = {name.removeprefix(f"{package}.") for name in after if name.startswith(package)}
    allowed = {package, "services", "types", "_compat", "gapic_version", *SERVICE, *TYPES}
    assert of_package <= allowed, of_package - allowed
    assert {"services.notebook_service.client", "types.notebook_runtime"} <= of_package
    heavy = r"google\.(genai|cloud\.(aiplatform$|aiplatform\.|storage|bigquery|resource|notebooks))"
    for names in (after, loaded["rest"][2]):
        assert not [name for name in names if re.match(heavy, name) or "vertexai" in name]
    assert loaded["rest"][0] == "VertexApi"
    assert not {"grpc", "google.protobuf", "proto"} & set(loaded["rest"][2])
    assert not [name for name in loaded["rest"][2] if "aiplatform_v1" in name]


WITHOUT = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.startswith("google.cloud.aiplatform"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
"""


def test_without_the_package_calls_go_over_rest(tmp_path: Path) -> None:
    with serve(tmp_path / "sandbox") as sandbox:
        kind, _, after = run(WITHOUT + LOADED, json.dumps(sandbox.endpoints), "grpc")
    assert kind == "VertexApi"
    assert "grpc" not in after


SERVED = """
import json, pathlib, tempfile, grpc
from provision.sandbox.serve import serve
with serve(pathlib.Path(sys.argv[1])) as running:
    address = running.endpoints["aiplatform_grpc"]
    channel = grpc.insecure_channel(address, options=[("grpc.enable_http_proxy", 0)])
    codes = []
    for service in ("aiplatform.v1", "notebooks.v2"):
        call = channel.unary_unary(f"/google.cloud.{service}.NotebookService/Get")
        try:
            call(b"", timeout=60)
        except grpc.RpcError as error:
            codes.append(error.code().name)
    channel.close()
    print(json.dumps(codes))
"""


def test_a_sandbox_without_the_package_has_the_service_over_rest_only(tmp_path: Path) -> None:
    assert run(WITHOUT + SERVED, str(tmp_path / "sandbox")) == ["UNIMPLEMENTED"] * 2


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package whose `__init__` cannot be executed, with a module that can."""
    folder = tmp_path / "heavy_package_of_a_test"
    (folder / "inner").mkdir(parents=True)
    (folder / "__init__.py").write_text("raise RuntimeError('executed')")
    (folder / "inner" / "__init__.py").write_text("raise RuntimeError('executed')")
    (folder / "inner" / "leaf.py").write_text(f"import {folder.name}.inner\nvalue = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield folder
    for name in [name for name in sys.modules if name.startswith(folder.name)]:
        del sys.modules[name]


def test_a_module_is_imported_without_its_package(package: Path) -> None:
    with pytest.raises(RuntimeError, match="executed"):
        importlib.import_module(f"{package.name}.inner.leaf")
    skip_package_init(package.name, f"{package.name}.inner")
    assert importlib.import_module(f"{package.name}.inner.leaf").value == 1
    skipped = sys.modules[package.name]
    skip_package_init(package.name)
    assert sys.modules[package.name] is skipped
    with pytest.raises(ModuleNotFoundError, match=r"inner\.none"):
        skip_package_init(f"{package.name}.inner.none")


def test_a_package_that_is_imported_stays(package: Path) -> None:
    (package / "__init__.py").write_text("value = 2")
    whole = importlib.import_module(package.name)
    skip_package_init(package.name)
    assert sys.modules[package.name] is whole
    assert whole.value == 2
