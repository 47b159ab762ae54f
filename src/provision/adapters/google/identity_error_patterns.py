"""Google Cloud's errors about the caller: credentials, quota project, APIs and projects."""

from __future__ import annotations

from provision.adapters.google import error_hints
from provision.adapters.google.error_hints import ErrorPattern

_LOGIN = "gcloud auth application-default login"

IDENTITY_PATTERNS: tuple[ErrorPattern, ...] = (
    ErrorPattern(
        "quota-project",
        "fatal",
        "no quota project is set for your credentials",
        "gcloud auth application-default set-quota-project {project}   (or set "
        "GOOGLE_CLOUD_QUOTA_PROJECT={project})",
        (
            r"requires a quota project",
            r"local Application Default Credentials.*quota project",
            r"has not been used in project (764086051850|32555940559) before",
        ),
        ("USER_PROJECT_DENIED",),
    ),
    ErrorPattern(
        "api-disabled",
        "fatal",
        "an API is not enabled in project {project}: {service}",
        (
            "gcloud services enable {service} --project={project}   (it takes effect "
            "after a minute or two)"
        ),
        (
            (
                r"API has not been used in project \S+ before or it is "
                r"disabled.*?/apis?/(?:api|library)/(?P<service>[a-z0-9.-]+\.googleapis\.com)"
            ),
            r"(?P<service>[a-z]+\.googleapis\.com).{0,80}is (?:not enabled|disabled)",
        ),
        ("SERVICE_DISABLED", "accessNotConfigured"),
    ),
    ErrorPattern(
        "billing",
        "fatal",
        "project {project} has no billing account",
        "link an account: https://console.cloud.google.com/billing/linkedaccount?project={project}",
        (r"requires billing to be enabled", r"[Bb]illing (?:account|has not been|is disabled)"),
        ("BILLING_DISABLED", "UREQ_PROJECT_BILLING_NOT_FOUND"),
    ),
    ErrorPattern(
        "scopes",
        "fatal",
        "your credentials lack the scope for Google Cloud",
        f"{_LOGIN} --scopes=https://www.googleapis.com/auth/cloud-platform   (on a Google Cloud "
        "machine, the machine's access scope must be cloud-platform)",
        (r"insufficient authentication scopes",),
        ("ACCESS_TOKEN_SCOPE_INSUFFICIENT", "insufficientPermissions"),
    ),
    ErrorPattern(
        "credentials", "fatal", "Google Cloud does not accept your credentials", _LOGIN, codes=(16,)
    ),
    ErrorPattern(
        "act-as",
        "fatal",
        "you are not allowed to use the instance's service account",
        error_hints.act_as_hint,
        (
            (
                r"needs iam\.serviceAccounts\.[aA]ctAs .*? on (?:VM )?Service Account "
                r"(?P<account>[^\s,]+)"
            ),
            r"(?P<permission>iam\.serviceAccounts\.actAs)",
        ),
    ),
    ErrorPattern(
        "account",
        "fatal",
        "there is no service account {account}",
        "set `service_account` to an existing account: gcloud iam service-accounts list "
        "--project={project}\n"
        "or create this account: gcloud iam service-accounts create {short} --project={project}",
        (
            (
                r"'(?:One of \[)?(?P<account>(?P<short>[a-z0-9-]+)@[a-z0-9.-]+)\]?' of type "
                r"'serviceAccount' was not found"
            ),
            (
                r"[Ss]ervice account "
                r"\"?(?P<account>(?P<short>[a-z0-9-]+)@[a-z0-9.-]+[a-z0-9])\"? does not exist"
            ),
        ),
    ),
)
