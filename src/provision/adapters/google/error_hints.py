"""The type of error patterns, and their messages and hints that depend on the values in an error.

Names in braces are filled in by `errors.classify_error`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

HintValues = Mapping[str, str]
"""Values for the templates: the project, the groups of the pattern, the ErrorInfo's metadata."""


class ErrorPattern(NamedTuple):
    """An error with its scope, message and hint.

    It matches if the code is among `codes` (() for any), and one of `patterns` is in the message or
    the reason is among `reasons`.
    """

    kind: str
    scope: str | Callable[[HintValues], str]
    what: str | Callable[[HintValues], str]
    hint: str | Callable[[HintValues], str]
    patterns: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    codes: tuple[int, ...] = ()
    operation: bool | None = None
    max_retries: int | None = 0


_ROLE_BY_PERMISSION = (
    ("notebooks.", "roles/notebooks.admin"),
    ("compute.subnetworks.", "roles/compute.networkUser"),
    ("compute.networks.", "roles/compute.networkUser"),
    ("compute.reservations.", "roles/compute.viewer"),
    ("compute.", "roles/compute.viewer"),
    ("storage.", "roles/storage.objectAdmin"),
    ("secretmanager.", "roles/secretmanager.secretAccessor"),
    ("serviceusage.", "roles/serviceusage.serviceUsageConsumer"),
    ("iam.serviceAccounts.", "roles/iam.serviceAccountUser"),
    ("cloudkms.", "roles/cloudkms.cryptoKeyEncrypterDecrypter"),
)
_CONSTRAINT_HINTS = {
    "compute.vmExternalIpAccess": (
        "set `public_ip: false` for the target: the policy of this project does not allow "
        "public addresses"
    ),
    "compute.requireShieldedVm": (
        "set `shielded: {secure_boot: true}` for the target, and use an image whose GPU driver "
        "is signed (workbench-instances-2603)"
    ),
    "compute.trustedImageProjects": (
        "ask the policy's administrator to allow projects/cloud-notebooks-managed, the source "
        "of Workbench's images"
    ),
    "compute.disableGuestAttributesAccess": (
        "no change is needed: the instance cannot report its progress, but its report still "
        "arrives through the bucket"
    ),
    "compute.restrictCloudNATUsage": (
        "set `nat: false` for the target, and `mirrors` that the instance can reach"
    ),
    "gcp.resourceLocations": "under `zones`, list zones that the policy allows",
    "iam.disableServiceAccountCreation": "set `service_account` to an existing service account",
}
PROXY_HINT = (
    "the instance's service account needs roles/notebooks.runner on the project; without a "
    "public address, the subnet needs Private Google Access and DNS for\n"
    "notebooks.googleapis.com, *.notebooks.cloud.google.com and "
    "*.notebooks.googleusercontent.com; port 8080 must be free"
)


def quota_scope(values: HintValues) -> str:
    """Return the scope of a quota: a zone, a region, or the whole project."""
    if values.get("everywhere") or values.get("metric") == "GPUS_ALL_REGIONS":
        return "global"
    return "zone" if values.get("zone") else "region"


def quota_what(values: HintValues) -> str:
    """Return the message for an exhausted quota."""
    where = (
        "globally"
        if quota_scope(values) == "global"
        else "in " + values.get("zone", values.get("region", "the region"))
    )
    return (
        "quota {metric} is used up "
        + where
        + (f": the limit is {values['limit'].removesuffix('.0')}" if "limit" in values else "")
    )


def quota_hint(values: HintValues) -> str:
    """Return the command that shows a quota, and the page for requesting more."""
    page = (
        "request more quota at "
        "https://console.cloud.google.com/iam-admin/quotas?project={project} (filter: "
        "{metric}), or delete resources that use it"
    )
    if quota_scope(values) == "global":
        return (
            "show the usage: gcloud compute project-info describe --project={project} "
            '--format="yaml(quotas)"\n' + page
        )
    region, alternative = (
        (values["zone"].rpartition("-")[0], "more zones")
        if "zone" in values
        else ("{region}", "zones in a different region")
    )
    return (
        f"show the usage: gcloud compute regions describe {region} --project={{project}} "
        f'--format="yaml(quotas)"\n{page}, or list {alternative}'
    )


def capacity_hint(values: HintValues) -> str:
    """Return the hint for a zone without capacity, with the zones that the service suggests."""
    suggestion = "Google Cloud suggests these zones: {zones}\n" if values.get("zones") else ""
    return (
        suggestion + "run the command again later, list more zones for the target, or use a "
        "different GPU; a reservation guarantees capacity"
    )


def permission_what(values: HintValues) -> str:
    """Return the message for a missing permission, with its name if the service reports it."""
    return "a permission is missing" + (": {permission}" if values.get("permission") else "")


def permission_hint(values: HintValues) -> str:
    """Return the command that grants a role with the missing permission."""
    permission = values.get("permission", "")
    role = next(
        (role for start, role in _ROLE_BY_PERMISSION if permission.startswith(start)),
        "roles/notebooks.admin",
    )
    if role == "roles/compute.networkUser":
        host = values.get("host", "HOST_PROJECT")
        return (
            "in a Shared VPC, you and the Notebooks service agent need access to the network "
            "(for NUMBER, see gcloud projects describe {project}):\n"
            f"gcloud projects add-iam-policy-binding {host} --role={role} "
            "--member=serviceAccount:service-NUMBER@gcp-sa-notebooks.iam.gserviceaccount.com"
        )
    if permission.startswith("storage."):
        return (
            f"gcloud storage buckets add-iam-policy-binding gs://BUCKET --role={role} "
            "--member=user:YOU"
        )
    return f"gcloud projects add-iam-policy-binding {{project}} --role={role} --member=user:YOU"


def act_as_hint(values: HintValues) -> str:
    """Return the command that allows a person to act as a service account."""
    account = values.get("account", "SERVICE_ACCOUNT").rpartition("/")[2]
    return (
        "the user who creates an instance must be allowed to act as its service account:\n"
        f"gcloud iam service-accounts add-iam-policy-binding {account} --project={{project}} "
        "--role=roles/iam.serviceAccountUser --member=user:YOU"
    )


def policy_hint(values: HintValues) -> str:
    """Return the change of the spec that satisfies a policy of the organization."""
    change = _CONSTRAINT_HINTS.get(
        values.get("constraint", ""),
        "ask the administrator of the organization's policies, or use a different project",
    )
    return (
        change + "\n"
        "show the policy: gcloud org-policies describe {constraint} --effective "
        "--project={project}"
    )
