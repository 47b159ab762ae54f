"""Errors of the emulated services for scripted faults.

They occur at a request, at a creation, and during the creation of an instance.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from provision.facts import Facts
from provision.sandbox import hardware, operations
from provision.sandbox.api_errors import RETRY_INFO, ApiError, StatusCode, error_info
from provision.sandbox.faults import Faults
from provision.sandbox.request_validation import first_or_empty

_NOTEBOOKS_API = "notebooks.googleapis.com"
VERTEX_API = "aiplatform.googleapis.com"
_API_NAMES = {_NOTEBOOKS_API: "Notebooks API", VERTEX_API: "Vertex AI API"}
_PERMISSIONS = {
    _NOTEBOOKS_API: "notebooks.instances.list",
    VERTEX_API: "aiplatform.notebookRuntimeTemplates.get",
}
_RETRY_AFTER = 1
"""Seconds."""


def raise_request_fault(
    faults: Faults, project: str, *, changes: str = "", api: str = _NOTEBOOKS_API
) -> None:
    """Raise the ApiError of a fault of any request, or of a change of the resource `changes`."""
    if error := faults.consume_scripted_error("request"):
        raise error
    if faults.is_nth_request("token-expiry"):
        raise _expired_token_error(api)
    if faults.consume("rate"):
        raise _rate_limit_error(project, api)
    if faults.consume("error-500"):
        raise ApiError(StatusCode.INTERNAL, "Internal error encountered.")
    if faults.consume("unavailable"):
        raise ApiError(StatusCode.UNAVAILABLE, "The service is currently unavailable.")
    if faults.has("api-disabled"):
        raise _disabled_api_error(project, api)
    if faults.has("permission"):
        raise _permission_error(project, api)
    if changes and faults.consume("busy"):
        raise operations.conflict_error(changes)


def raise_lost_answer(faults: Faults) -> None:
    """Raise the ApiError of a request that was done, but whose answer does not arrive."""
    if faults.consume("lost-answer"):
        raise ApiError(StatusCode.UNAVAILABLE, "The connection was closed before the answer.")


def _expired_token_error(api: str) -> ApiError:
    return ApiError(
        StatusCode.UNAUTHENTICATED,
        "Request had invalid authentication credentials. Expected OAuth 2 access token, "
        "login cookie or other valid authentication credential.",
        details=(error_info("ACCESS_TOKEN_EXPIRED", "googleapis.com", {"service": api}),),
        headers={"WWW-Authenticate": 'Bearer error="invalid_token"'},
    )


def _rate_limit_error(project: str, api: str) -> ApiError:
    consumer = f"projects/{project}"
    metadata = {"service": api, "consumer": consumer}
    retry = {"@type": RETRY_INFO, "retryDelay": f"{_RETRY_AFTER}s"}
    return ApiError(
        StatusCode.RESOURCE_EXHAUSTED,
        "Quota exceeded for quota metric 'API requests' and limit 'API requests per "
        f"minute' of service '{api}' for consumer '{consumer}'.",
        details=(error_info("RATE_LIMIT_EXCEEDED", "googleapis.com", metadata), retry),
        headers={"Retry-After": str(_RETRY_AFTER)},
    )


def _disabled_api_error(project: str, api: str) -> ApiError:
    metadata = {"service": api, "consumer": f"projects/{project}"}
    url = f"https://console.developers.google.com/apis/api/{api}/overview?project={project}"
    return ApiError(
        StatusCode.PERMISSION_DENIED,
        f"{_API_NAMES[api]} has not been used in project {project} before or it is disabled. "
        f"Enable it by visiting {url} then retry.",
        details=(error_info("SERVICE_DISABLED", "googleapis.com", metadata),),
    )


def _permission_error(project: str, api: str) -> ApiError:
    permission, resource = _PERMISSIONS[api], f"projects/{project}"
    metadata = {"permission": permission, "resource": resource}
    return ApiError(
        StatusCode.PERMISSION_DENIED,
        f"Permission '{permission}' denied on '{resource}'",
        details=(error_info("IAM_PERMISSION_DENIED", api, metadata),),
    )


def raise_creation_fault(faults: Faults, zone: str, requested: Mapping[str, Any]) -> None:
    """Raise the ApiError of a fault that refuses a creation in a zone before it begins."""
    setup = requested.get("gceSetup", {})
    if error := faults.consume_scripted_error("create", zone):
        raise error
    if faults.has("act-as"):
        # everycure-org/matrix#1883
        account = first_or_empty(setup.get("serviceAccounts")).get("email", "default")
        needs = (
            "USER needs iam.serviceAccounts.ActAs (Service Account User) permission on VM "
            "Service Account"
        )
        raise ApiError(
            StatusCode.PERMISSION_DENIED,
            f"{needs} projects/-/serviceAccounts/{account}, permission denied",
        )
    # GoogleCloudPlatform/compute-image-tools#1834
    if faults.has("external-ip") and not setup.get("disablePublicIp"):
        raise _constraint_error(
            "compute.vmExternalIpAccess",
            "Add instance to the constraint to use external IP with it.",
        )
    has_secure_boot = setup.get("shieldedInstanceConfig", {}).get("enableSecureBoot")
    if faults.has("secure-boot") and not has_secure_boot:
        raise _constraint_error(
            "compute.requireShieldedVm",
            "Secure Boot is not enabled in the 'shielded_instance_config' field.",
        )


def _constraint_error(constraint: str, advice: str) -> ApiError:
    message = f"Constraint constraints/{constraint} violated for project 1. {advice}"
    return ApiError(StatusCode.FAILED_PRECONDITION, message, http=412, reason="conditionNotMet")


def creation_operation_error(
    faults: Faults, project: str, zone: str, setup: Mapping[str, Any], facts: Facts
) -> ApiError | None:
    """Return the error with which a creation in a zone ends, or None."""
    if error := faults.consume_scripted_error("operation", zone):
        return error
    if faults.has("stockout", zone):
        return hardware.stockout_error(project, zone, setup, facts, faults.locations("stockout"))
    if faults.has("quota-global"):
        return ApiError(
            StatusCode.PERMISSION_DENIED, "Quota 'GPUS_ALL_REGIONS' exceeded.  Limit: 0.0 globally."
        )
    if faults.has("quota", region := hardware.region_of(zone)):
        accelerator = first_or_empty(setup.get("acceleratorConfigs"))
        card = hardware.card_of(accelerator, facts)
        metric = hardware.quota_metric(card) if card else "CPUS"
        # hashicorp/terraform-provider-google#18952: code 7, not 8.
        return ApiError(
            StatusCode.PERMISSION_DENIED,
            f"Quota '{metric}' exceeded.  Limit: 0.0 in region {region}.",
        )
    if faults.has("create-aborted"):
        return ApiError(StatusCode.ABORTED, "Failed to perform tenant project creation")
    if faults.has("create-internal"):
        return ApiError(StatusCode.INTERNAL, "an internal error has occurred")
    return None
