"""Application Default Credentials, or none on loopback. Tokens are never shown or stored."""

from __future__ import annotations

import warnings
from typing import Any

from provision.adapters.google.endpoints import Endpoints
from provision.adapters.google.errors import CloudError, fatal_error
from provision.adapters.google.http_adapter import timeout_adapter
from provision.adapters.google.optional_import import import_optional
from provision.sanitize import escape_control, redact

SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
_LOGIN = "gcloud auth application-default login"


def load_credentials(endpoints: Endpoints) -> Any:
    """Return google-auth's credentials for these endpoints, anonymous ones on loopback.

    Raises:
        CloudError: there are no credentials, or they cannot be read.
    """
    if endpoints.is_loopback:
        return import_optional("google.auth.credentials").AnonymousCredentials()
    auth, exceptions = import_optional("google.auth"), import_optional("google.auth.exceptions")
    try:
        # The service reports a missing quota project when it matters, with the command that sets
        # it.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            credentials, _ = auth.default(scopes=list(SCOPES))
    except exceptions.DefaultCredentialsError as error:
        hint = (
            f"{_LOGIN}\nor set GOOGLE_APPLICATION_CREDENTIALS to the credentials "
            "file of a service account"
        )
        what = "no credentials for Google Cloud were found"
        raise fatal_error("no-credentials", what, _error_text(error), hint) from error
    except exceptions.GoogleAuthError as error:
        raise expired_credentials(error) from error
    return credentials


def refresh_token(credentials: Any, answer_s: float) -> None:
    """Refresh the token, as after a rejected one; anonymous credentials have none.

    Raises:
        CloudError: the credentials have expired.
    """
    exceptions = import_optional("google.auth.exceptions")
    try:
        credentials.refresh(token_request(answer_s))
    except exceptions.InvalidOperation:
        return
    except exceptions.GoogleAuthError as error:
        raise expired_credentials(error) from error


def token_request(answer_s: float) -> Any:
    """Return the sender of token requests, with the time limit of every call."""
    session = import_optional("requests").Session()
    for scheme in ("https://", "http://"):
        session.mount(scheme, timeout_adapter(answer_s))
    return import_optional("google.auth.transport.requests").Request(session)


def expired_credentials(error: Exception) -> CloudError:
    """Return the error for credentials that no longer give a token."""
    hint = (
        f"{_LOGIN}\nfor a service account: set GOOGLE_APPLICATION_CREDENTIALS to "
        "a key or workload identity that is still valid"
    )
    what = "your Google Cloud credentials are no longer valid"
    return fatal_error("credentials", what, _error_text(error), hint)


def _error_text(error: Exception) -> str:
    """Return the first line of google-auth's message; the rest may be a token server's answer."""
    return redact(escape_control(str(error.args[0] if error.args else error))).split("\n")[0][:300]
