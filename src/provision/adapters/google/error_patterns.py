"""The table of Google Cloud's errors; the first pattern that matches counts.

The texts are from Google's services as reported in hashicorp/terraform-provider-google #11228,
#18952, #19342 and #21371, from the capacity errors that cockroachdb's roachprod and SkyPilot
recognize, and from the documentation of Compute Engine and google.rpc.ErrorInfo.
"""

from __future__ import annotations

from provision.adapters.google import error_hints
from provision.adapters.google.error_pattern import ErrorPattern
from provision.adapters.google.identity_error_patterns import IDENTITY_PATTERNS
from provision.adapters.google.instance_commands import InstanceCommand, render_command

_RETRY_HINT = "it usually passes by itself: run the same command again in a few minutes"
_EXISTS = (
    "exists",
    "fatal",
    "there is something of this name already",
    lambda _: render_command(InstanceCommand("list", "{project}", "{zone}")),
)

ERROR_PATTERNS: tuple[ErrorPattern, ...] = (
    *IDENTITY_PATTERNS,
    # Quota and capacity.
    ErrorPattern(
        "throttled",
        "zone",
        "Compute Engine takes no more operations at the moment",
        _RETRY_HINT,
        (r"RESOURCE_OPERATION_RATE_EXCEEDED", r"[Oo]peration rate exceeded"),
        ("RESOURCE_OPERATION_RATE_EXCEEDED",),
        operation=True,
    ),
    ErrorPattern(
        "rate",
        "retry",
        "Google Cloud asks for fewer requests",
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
        "capacity",
        "zone",
        "the zone has no machine of this kind free",
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
        "the zone did not keep the machine: it was taken away, or is not ready",
        _RETRY_HINT + ", or list further zones",
        (r"UNSUPPORTED_OPERATION", r"RESOURCE_NOT_READY"),
        ("UNSUPPORTED_OPERATION", "RESOURCE_NOT_READY", "resourceNotReady"),
    ),
    # Policies of the organization.
    ErrorPattern(
        "policy",
        "fatal",
        "a policy of the organization forbids it: {constraint}",
        error_hints.policy_hint,
        (
            r"[Cc]onstraint (?:constraints/)?(?P<constraint>[A-Za-z]+\.[A-Za-z.]+) violated",
            r"constraints/(?P<constraint>[A-Za-z]+\.[A-Za-z]+)",
        ),
    ),
    ErrorPattern(
        "changed",
        "fatal",
        "somebody else changed it at the same time",
        "run the same command again",
        (r"pre-conditions you specified did not hold",),
        ("conditionNotMet",),
        (9,),
    ),
    # The request.
    ErrorPattern(
        "protected",
        "fatal",
        "metadata key {key} belongs to Workbench",
        "remove {key} from `metadata:` of the target",
        (r'metadata key "?(?P<key>[A-Za-z0-9_-]+)"? is protected',),
    ),
    ErrorPattern(
        "disk",
        "fatal",
        "a disk is smaller than the image that it is made from",
        "raise `boot_disk: {size: ...}` of the target; the default is 150GB",
        (r"disk size .{0,40}cannot be smaller than the (?:image|chosen)",),
    ),
    ErrorPattern(
        "image",
        "fatal",
        "there is no such image: {image}",
        "write the exact name of an image under `image:`: gcloud compute images list "
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
        "the subnet is not there in the region of the zone",
        "name a subnet of that region under `subnet:`: gcloud compute networks subnets "
        "list --project={project}",
        (r"SUBNET_NOT_FOUND_FOR_VPC", r"/subnetworks/[a-z0-9-]+' (?:was|is) not found"),
        ("SUBNET_NOT_FOUND_FOR_VPC",),
    ),
    ErrorPattern(
        "network",
        "global",
        "the network is not there",
        "name one under `network:`: gcloud compute networks list --project={project}",
        (r"VPC_NOT_FOUND", r"/networks/[a-z0-9-]+' (?:was|is) not found"),
        ("VPC_NOT_FOUND",),
    ),
    ErrorPattern(
        "not-here",
        "zone",
        "the zone does not have this machine or GPU",
        "list zones under the target that have it: gcloud compute accelerator-types list "
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
        "there is no project {project}, or you may not see it",
        "correct `project:` under the target: gcloud projects list",
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
        "the instance could not register with the proxy of JupyterLab, so it never becomes ACTIVE",
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
        "look at the network and the proxy (https_proxy, no_proxy) of this machine, then "
        "run it again",
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
        "another operation is at work on the instance",
        _RETRY_HINT,
        (r"unable to queue the operation",),
        max_retries=None,
    ),
    ErrorPattern(*_EXISTS, codes=(6,)),
    ErrorPattern(*_EXISTS, (r"[Aa]lready exists",), ("alreadyExists",), (10,)),
    ErrorPattern(
        "tenant",
        "retry",
        "Workbench could not prepare its own project for yours",
        _RETRY_HINT + "; where it stays, tell Google Cloud's support the words above",
        (r"Failed to perform tenant project creation",),
        max_retries=1,
    ),
    ErrorPattern(
        "internal",
        "retry",
        "the operation failed inside Google Cloud",
        "run the same command again; where it stays, look at what may be behind it: the "
        "owner of the instance (`access:`), the service account, the subnet",
        codes=(2, 13),
        operation=True,
        max_retries=1,
    ),
    ErrorPattern(
        "aborted",
        "retry",
        "the operation was broken off by Google Cloud",
        _RETRY_HINT,
        codes=(10, 14, 4),
        operation=True,
        max_retries=1,
    ),
    ErrorPattern(
        "cancelled",
        "fatal",
        "the operation was cancelled",
        "somebody or something cancelled it; run the same command again",
        codes=(1,),
    ),
    ErrorPattern(
        "unavailable",
        "retry",
        "Google Cloud did not answer as it should",
        _RETRY_HINT,
        codes=(13, 14, 4, 8),
        max_retries=None,
    ),
    ErrorPattern(
        "conflict",
        "fatal",
        "something else changed it at the same time",
        "run the same command again",
        codes=(10,),
    ),
    ErrorPattern(
        "not-found",
        "fatal",
        "it is not there",
        "look at the names in the spec: project, zones, network, bucket",
        codes=(5,),
    ),
    ErrorPattern(
        "refused",
        "fatal",
        "Google Cloud refused it",
        "gcloud projects get-iam-policy {project}   shows who may do what",
        codes=(7,),
    ),
    ErrorPattern(
        "refused",
        "fatal",
        "Google Cloud does not take what was asked",
        "change what the message names under the target",
        codes=(3, 9, 11, 12),
    ),
    ErrorPattern(
        "unknown",
        "zone",
        "an error that is not known here",
        "where it stays, tell it as an issue with the words above",
    ),
)
