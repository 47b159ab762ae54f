"""The table of Google Cloud's errors; the first pattern that matches counts.

The texts are from Google's services as reported in hashicorp/terraform-provider-google #11228,
#18952, #19342 and #21371, from the capacity errors that cockroachdb's roachprod and SkyPilot
recognize, and from the documentation of Compute Engine and google.rpc.ErrorInfo.
"""

from __future__ import annotations

from provision.adapters.google import error_hints
from provision.adapters.google.error_hints import ErrorPattern
from provision.adapters.google.identity_error_patterns import IDENTITY_PATTERNS
from provision.adapters.google.instance_commands import InstanceCommand, render_command

_RETRY_HINT = "this is usually temporary: run the same command again in a few minutes"
_EXISTS = (
    "exists",
    "fatal",
    "a resource with this name already exists",
    lambda _: render_command(InstanceCommand("list", "{project}", "{zone}")),
)

ERROR_PATTERNS: tuple[ErrorPattern, ...] = (
    *IDENTITY_PATTERNS,
    # Quota and capacity.
    ErrorPattern(
        "throttled",
        "zone",
        "Compute Engine does not accept more operations at the moment",
        _RETRY_HINT,
        (r"RESOURCE_OPERATION_RATE_EXCEEDED", r"[Oo]peration rate exceeded"),
        ("RESOURCE_OPERATION_RATE_EXCEEDED",),
        operation=True,
    ),
    ErrorPattern(
        "rate",
        "retry",
        "Google Cloud limits the rate of requests",
        _RETRY_HINT,
        (
            r"Quota exceeded for quota metric '[^']+' and limit '[^']+ per (?:minute|second|day)",
            r"[Rr]ate [Ll]imit [Ee]xceeded",
        ),
        (
            "RATE_LIMIT_EXCEEDED",
            "rateLimitExceeded",
            "userRateLimitExceeded",
            "RESOURCE_OPERATION_RATE_EXCEEDED",
        ),
        max_retries=None,
    ),
    ErrorPattern(
        "quota",
        error_hints.quota_scope,
        error_hints.quota_what,
        error_hints.quota_hint,
        (
            (
                r"Quota '(?P<metric>[A-Za-z0-9_./-]+)' "
                r"exceeded\.(?:\s+Limit:\s+(?P<limit>[\d.]+))?\s*"
                r"(?:in region (?P<region>[a-z0-9-]+)|in zone "
                r"(?P<zone>[a-z0-9-]+)|(?P<everywhere>globally))?"
            ),
            (
                r"Insufficient regional quota to satisfy request: resource "
                r'"(?P<metric>[A-Za-z0-9_]+)".*?quota of \'(?P<limit>[\d.]+)\''
            ),
        ),
        ("QUOTA_EXCEEDED", "quotaExceeded"),
    ),
    ErrorPattern(
        "quota",
        "region",
        "the project's quota for training in this region is too small",
        "request more of the metrics above, which count for training only: "
        "https://console.cloud.google.com/iam-admin/quotas?project={project}; or list another "
        "region under `regions`",
        (r"[Tt]he following quota metrics exceed quota limits",),
    ),
    ErrorPattern(
        "capacity",
        "zone",
        "the zone currently has no capacity for this machine",
        error_hints.capacity_hint,
        (
            (
                r"zone '(?:projects/[^/]+/zones/)?(?P<zone>[a-z0-9-]+)' does not have enough "
                r"resources available"
            ),
            r"does not have enough resources available to fulfill the request",
            r"ZONE_RESOURCE_POOL_EXHAUSTED|VM_MIN_COUNT_NOT_REACHED|RESOURCE_POOL_EXHAUSTED",
            r"insufficientCapacity",
        ),
        (
            "ZONE_RESOURCE_POOL_EXHAUSTED",
            "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS",
            "resource_availability",
            "insufficientCapacity",
            "VM_MIN_COUNT_NOT_REACHED",
        ),
    ),
    ErrorPattern(
        "capacity",
        "zone",
        "the zone reclaimed the machine, or the machine is not ready",
        _RETRY_HINT + ", or list more zones",
        (r"UNSUPPORTED_OPERATION", r"RESOURCE_NOT_READY"),
        ("UNSUPPORTED_OPERATION", "RESOURCE_NOT_READY", "resourceNotReady"),
    ),
    # Policies of the organization.
    ErrorPattern(
        "policy",
        "fatal",
        "an organization policy forbids this: {constraint}",
        error_hints.policy_hint,
        (
            r"[Cc]onstraint (?:constraints/)?(?P<constraint>[A-Za-z]+\.[A-Za-z.]+) violated",
            r"constraints/(?P<constraint>[A-Za-z]+\.[A-Za-z]+)",
        ),
    ),
    ErrorPattern(
        "changed",
        "fatal",
        "someone else changed it at the same time",
        "run the same command again",
        (r"pre-conditions you specified did not hold",),
        ("conditionNotMet",),
        (9,),
    ),
    # The request.
    ErrorPattern(
        "protected",
        "fatal",
        "metadata key {key} is reserved by Workbench",
        "remove {key} from the target's `metadata`",
        (r'metadata key "?(?P<key>[A-Za-z0-9_-]+)"? is protected',),
    ),
    ErrorPattern(
        "disk",
        "fatal",
        "a disk is smaller than its image",
        "increase the target's `boot_disk: {size: ...}`; the default is 150GB",
        (r"disk size .{0,40}cannot be smaller than the (?:image|chosen)",),
    ),
    ErrorPattern(
        "image",
        "fatal",
        "there is no such image: {image}",
        "set `image` to the exact name of an image: gcloud compute images list "
        "--project=cloud-notebooks-managed --no-standard-images",
        (
            (
                r"projects/[a-z0-9.:-]+/global/images/(?:family/)?(?P<image>[a-z0-9-]+)' "
                r"(?:was not found|is not found)"
            ),
            r"[Ii]mage (?:family )?'?(?P<image>[a-z0-9-]+)'? (?:was not found|does not exist)",
        ),
    ),
    ErrorPattern(
        "subnet",
        "region",
        "the subnet does not exist in the zone's region",
        "set `subnet` to a subnet in that region: gcloud compute networks subnets list "
        "--project={project}",
        (r"SUBNET_NOT_FOUND_FOR_VPC", r"/subnetworks/[a-z0-9-]+' (?:was|is) not found"),
        ("SUBNET_NOT_FOUND_FOR_VPC",),
    ),
    ErrorPattern(
        "network",
        "global",
        "the network does not exist",
        "set `network` to an existing network: gcloud compute networks list --project={project}",
        (r"VPC_NOT_FOUND", r"/networks/[a-z0-9-]+' (?:was|is) not found"),
        ("VPC_NOT_FOUND",),
    ),
    ErrorPattern(
        "not-here",
        "zone",
        "the zone does not have this machine or GPU",
        "under `zones`, list zones that have it: gcloud compute accelerator-types list "
        "--project={project}",
        (
            (
                r"[Mm]achine type .{0,200}(?:does not exist|not found|not available|is not "
                r"supported) in"
            ),
            (
                r"[Aa]ccelerator type .{0,200}(?:does not exist|not found|not available|is not "
                r"supported)"
            ),
            (
                r"/(?:machineTypes|acceleratorTypes|reservations)/[a-z0-9-]+' (?:was not "
                r"found|is not found)"
            ),
            (
                r"[Rr]eservations? .{0,200}(?:does not exist|do not exist|not found|no "
                r"capacity|does not match)"
            ),
            r"is not found or access is unauthorized",
        ),
        ("RESOURCE_NOT_FOUND",),
    ),
    ErrorPattern(
        "project",
        "global",
        "there is no project {project}, or you have no access to it",
        "correct the target's `project`: gcloud projects list",
        (
            r"[Pp]roject .{0,100}(?:not found|has been deleted|was not found)",
            r"Failed to find project",
        ),
        ("CONSUMER_INVALID", "CONSUMER_SUSPENDED"),
    ),
    # Permissions.
    ErrorPattern(
        "proxy",
        "fatal",
        "the instance could not register with the JupyterLab proxy, so it never becomes ACTIVE",
        error_hints.PROXY_HINT,
        (r"Proxy Registration failed", r"Unable to get Service Account from VM"),
    ),
    ErrorPattern(
        "permission",
        "fatal",
        error_hints.permission_what,
        error_hints.permission_hint,
        (
            (
                r"Required '(?P<permission>[a-zA-Z.]+)' permission for "
                r"'projects/(?P<host>[a-z0-9:.-]+)/"
            ),
            r"(?:Required|Permission|permission) '(?P<permission>[a-zA-Z.]+)'",
            r"does not have (?P<permission>[a-zA-Z]+\.[a-zA-Z.]+) access",
            r"Policy update access denied",
        ),
        ("IAM_PERMISSION_DENIED", "forbidden"),
        (7, 9, 3, 2),
    ),
    # Temporary failures.
    ErrorPattern(
        "unreachable",
        "retry",
        "Google Cloud cannot be reached",
        "check this machine's network and proxy (https_proxy, no_proxy), then run the command "
        "again",
        (
            r"errors resolving",
            r"[Ff]ailed to connect to all addresses",
            r"[Ss]ocket closed",
            r"handshake failed",
            r"[Cc]onnection reset",
            r"recvmsg:",
        ),
        codes=(14,),
        operation=False,
        max_retries=None,
    ),
    ErrorPattern(
        "queue",
        "retry",
        "another operation on the instance is still running",
        _RETRY_HINT,
        (r"unable to queue the operation",),
        max_retries=None,
    ),
    ErrorPattern(*_EXISTS, codes=(6,)),
    ErrorPattern(*_EXISTS, (r"[Aa]lready exists",), ("alreadyExists",), (10,)),
    ErrorPattern(
        "tenant",
        "retry",
        "Workbench could not prepare its own (tenant) project for your project",
        _RETRY_HINT + "; if the error persists, send the message above to Google Cloud support",
        (r"Failed to perform tenant project creation",),
        max_retries=1,
    ),
    ErrorPattern(
        "internal",
        "retry",
        "the operation failed inside Google Cloud",
        "run the same command again; if the error persists, check the possible causes: the "
        "instance's owner (`access`), the service account, the subnet",
        codes=(2, 13),
        operation=True,
        max_retries=1,
    ),
    ErrorPattern(
        "aborted",
        "retry",
        "Google Cloud aborted the operation",
        _RETRY_HINT,
        codes=(10, 14, 4),
        operation=True,
        max_retries=1,
    ),
    ErrorPattern(
        "cancelled",
        "fatal",
        "the operation was cancelled",
        "a person or a program cancelled it; run the same command again",
        codes=(1,),
    ),
    ErrorPattern(
        "unavailable",
        "retry",
        "Google Cloud failed to answer the request",
        _RETRY_HINT,
        codes=(13, 14, 4, 8),
        max_retries=None,
    ),
    ErrorPattern(
        "conflict",
        "fatal",
        "another request changed it at the same time",
        "run the same command again",
        codes=(10,),
    ),
    ErrorPattern(
        "not-found",
        "fatal",
        "the resource does not exist",
        "check these names in the spec: `project`, `zones`, `network`, `bucket`",
        codes=(5,),
    ),
    ErrorPattern(
        "refused",
        "fatal",
        "Google Cloud refused the request",
        "gcloud projects get-iam-policy {project}   (shows who has which role)",
        codes=(7,),
    ),
    ErrorPattern(
        "refused",
        "fatal",
        "Google Cloud rejected the request as invalid",
        "change the target field that the message mentions",
        codes=(3, 9, 11, 12),
    ),
    ErrorPattern(
        "unknown",
        "zone",
        "Google Cloud returned an unknown error",
        "if the error persists, report it as an issue with the message above",
    ),
)
