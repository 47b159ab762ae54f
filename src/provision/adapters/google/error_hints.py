"""The ways out that depend on what the service said: quotas, roles, service accounts, policies.
Words in braces are filled in by `failures`.
"""

from __future__ import annotations

from collections.abc import Mapping

HintValues = Mapping[str, str]
"""What a hint is filled with: the project, the groups of the pattern, the metadata of the
ErrorInfo.
"""

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
    "compute.vmExternalIpAccess": "write `public_ip: false` under the target: the policy of this project allows no "  # noqa: E501
    "address on the internet",
    "compute.requireShieldedVm": "write `shielded: {secure_boot: true}` under the target, with an image whose GPU "  # noqa: E501
    "driver is signed (workbench-instances-2603)",
    "compute.trustedImageProjects": "ask who keeps the policy to allow projects/cloud-notebooks-managed, which the images "  # noqa: E501
    "of Workbench come from",
    "compute.disableGuestAttributesAccess": "the device cannot tell how far it is; its report still comes through the bucket",  # noqa: E501
    "compute.restrictCloudNATUsage": "write `nat: false` under the target, and `mirrors:` that the instance reaches",  # noqa: E501
    "gcp.resourceLocations": "write zones under the target that the policy allows",
    "iam.disableServiceAccountCreation": "name a service account that exists in `service_account:`",
}
PROXY_HINT = (
    "its service account needs roles/notebooks.runner on the project; without a public "
    "address the subnet needs Private Google Access, and DNS for\n"
    "notebooks.googleapis.com, *.notebooks.cloud.google.com and "
    "*.notebooks.googleusercontent.com; port 8080 must be free"
)


def quota_scope(words: HintValues) -> str:
    """How far a quota reaches: a zone, a region, or the whole project."""
    if words.get("everywhere") or words.get("metric") == "GPUS_ALL_REGIONS":
        return "global"
    return "zone" if words.get("zone") else "region"


def quota_what(words: HintValues) -> str:
    """Say which quota is used up, where, and how much it is."""
    where = (
        "globally"
        if quota_scope(words) == "global"
        else "in " + words.get("zone", words.get("region", "the region"))
    )
    return (
        "quota {metric} is used up "
        + where
        + (f": the limit is {words['limit'].removesuffix('.0')}" if "limit" in words else "")
    )


def quota_hint(words: HintValues) -> str:
    """Say how to see a quota, and where to ask for more."""
    page = (
        "ask for more at https://console.cloud.google.com/iam-admin/quotas?project={project} "
        "(filter: {metric}), or delete what uses it"
    )
    if quota_scope(words) == "global":
        return (
            "see what is used: gcloud compute project-info describe --project={project} "
            '--format="yaml(quotas)"\n' + page
        )
    region, other = (
        (words["zone"].rpartition("-")[0], "further zones")
        if "zone" in words
        else ("{region}", "zones of another region")
    )
    return (
        f"see what is used: gcloud compute regions describe {region} --project={{project}} "
        f'--format="yaml(quotas)"\n{page}, or name {other}'
    )


def capacity_hint(words: HintValues) -> str:
    """Say what helps where a zone has no machine free, the zones first that the service names."""
    named = "Google Cloud names zones that have it: {zones}\n" if words.get("zones") else ""
    return (
        named + "run it again later, list further zones under the target, or use another GPU; a "
        "reservation keeps capacity for you"
    )


def permission_what(words: HintValues) -> str:
    """Say which permission is missing, as far as the service told."""
    return "a permission is missing" + (": {permission}" if words.get("permission") else "")


def permission_hint(words: HintValues) -> str:
    """Say which role holds a permission, and the command that grants it."""
    permission = words.get("permission", "")
    role = next(
        (role for start, role in _ROLE_BY_PERMISSION if permission.startswith(start)),
        "roles/notebooks.admin",
    )
    if role == "roles/compute.networkUser":
        host = words.get("host", "HOST_PROJECT")
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


def act_as_hint(words: HintValues) -> str:
    """Say how a person is allowed to act as a service account."""
    account = words.get("account", "SERVICE_ACCOUNT").rpartition("/")[2]
    return (
        "who makes an instance must be allowed to act as its service account:\n"
        f"gcloud iam service-accounts add-iam-policy-binding {account} "
        f"--project={{project}} --role=roles/iam.serviceAccountUser --member=user:YOU"
    )


def policy_hint(words: HintValues) -> str:
    """Say what to write in the spec so that a policy of the organization holds."""
    way = _CONSTRAINT_HINTS.get(
        words.get("constraint", ""),
        "ask who keeps the policies of the organization, or use another project",
    )
    return (
        way + "\nsee the policy: gcloud org-policies describe {constraint} --effective "
        "--project={project}"
    )
