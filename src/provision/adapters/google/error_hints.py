"""Scopes, messages and hints that depend on the values in an error.

Names in braces are filled in by `errors.classify_error`.
"""

from __future__ import annotations

from collections.abc import Mapping

HintValues = Mapping[str, str]
"""Values for the templates: the project, the groups of the pattern, the ErrorInfo's metadata."""

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
        "write `public_ip: false` under the target: the policy of this project allows no "
        "address on the internet"
    ),
    "compute.requireShieldedVm": (
        "write `shielded: {secure_boot: true}` under the target, with an image whose GPU "
        "driver is signed (workbench-instances-2603)"
    ),
    "compute.trustedImageProjects": (
        "ask who keeps the policy to allow projects/cloud-notebooks-managed, which the images "
        "of Workbench come from"
    ),
    "compute.disableGuestAttributesAccess": (
        "the device cannot tell how far it is; its report still comes through the bucket"
    ),
    "compute.restrictCloudNATUsage": (
        "write `nat: false` under the target, and `mirrors:` that the instance reaches"
    ),
    "gcp.resourceLocations": "write zones under the target that the policy allows",
    "iam.disableServiceAccountCreation": "name a service account that exists in `service_account:`",
}
PROXY_HINT = (
    "its service account needs roles/notebooks.runner on the project; without a public "
    "address the subnet needs Private Google Access, and DNS for\n"
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
        "ask for more at https://console.cloud.google.com/iam-admin/quotas?project={project} "
        "(filter: {metric}), or delete what uses it"
    )
    if quota_scope(values) == "global":
        return (
            "see what is used: gcloud compute project-info describe --project={project} "
            '--format="yaml(quotas)"\n' + page
        )
    region, alternative = (
        (values["zone"].rpartition("-")[0], "further zones")
        if "zone" in values
        else ("{region}", "zones of another region")
    )
    return (
        f"see what is used: gcloud compute regions describe {region} --project={{project}} "
        f'--format="yaml(quotas)"\n{page}, or name {alternative}'
    )


def capacity_hint(values: HintValues) -> str:
    """Return the hint for a zone without capacity, with the zones that the service suggests."""
    suggestion = "Google Cloud names zones that have it: {zones}\n" if values.get("zones") else ""
    return (
        suggestion
        + "run it again later, list further zones under the target, or use another GPU; a "
        "reservation keeps capacity for you"
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
            "in a Shared VPC the service agent of Notebooks and you need the network "
            "(NUMBER: gcloud projects describe {project}):\n"
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
        "who makes an instance must be allowed to act as its service account:\n"
        f"gcloud iam service-accounts add-iam-policy-binding {account} "
        f"--project={{project}} --role=roles/iam.serviceAccountUser --member=user:YOU"
    )


def policy_hint(values: HintValues) -> str:
    """Return the change of the spec that satisfies a policy of the organization."""
    change = _CONSTRAINT_HINTS.get(
        values.get("constraint", ""),
        "ask who keeps the policies of the organization, or use another project",
    )
    return (
        change + "\nsee the policy: gcloud org-policies describe {constraint} --effective "
        "--project={project}"
    )
