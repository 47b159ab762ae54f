"""Who we are to Google: Application Default Credentials, or nobody on loopback. A token is never shown, kept or written."""

from __future__ import annotations

import warnings
from typing import Any

from provision.safe import redact, safe
from provision.world.cloud.endpoints import Endpoints
from provision.world.cloud.extra import need
from provision.world.cloud.failures import CloudError, Failure, Width
from provision.world.cloud.timed import timed_adapter

SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
_LOGIN = "gcloud auth application-default login"


def credentials(endpoints: Endpoints) -> Any:
    """Return google-auth's credentials for these endpoints: Application Default Credentials, or anonymous ones on loopback.

    Raises CloudError with the way out when there are none, or when they cannot be read.
    """
    if endpoints.loopback:
        return need("google.auth.credentials").AnonymousCredentials()
    auth, exceptions = need("google.auth"), need("google.auth.exceptions")
    try:
        with warnings.catch_warnings():  # a missing quota project is told by the service where it matters, with the command that sets it
            warnings.simplefilter("ignore")
            found, _ = auth.default(scopes=list(SCOPES))
    except exceptions.DefaultCredentialsError as error:
        raise _none(error) from error
    except exceptions.GoogleAuthError as error:
        raise stale(error) from error
    return found


def refresh(given: Any, answer_s: float) -> None:
    """Fetch a new token, as after one that the service refused; on loopback there is none to fetch. Raises CloudError."""
    exceptions = need("google.auth.exceptions")
    try:
        given.refresh(sender(answer_s))
    except exceptions.InvalidOperation:
        return
    except exceptions.GoogleAuthError as error:
        raise stale(error) from error


def sender(answer_s: float) -> Any:
    """Return what sends a request for a token, each within the limits of every call."""
    session = need("requests").Session()
    for scheme in ("https://", "http://"):
        session.mount(scheme, timed_adapter(answer_s))
    return need("google.auth.transport.requests").Request(session)


def stale(error: Exception) -> CloudError:
    """Return what is said of credentials that give no token any more."""
    hint = f"{_LOGIN}\nfor a service account: a key or workload identity that still holds, named by GOOGLE_APPLICATION_CREDENTIALS"
    return CloudError(Failure(Width.FATAL, "credentials", "your Google Cloud credentials no longer hold", _why(error), hint))


def _none(error: Exception) -> CloudError:
    hint = f"{_LOGIN}\nor set GOOGLE_APPLICATION_CREDENTIALS to the credentials file of a service account"
    return CloudError(Failure(Width.FATAL, "no-credentials", "no credentials for Google Cloud were found", _why(error), hint))


def _why(error: Exception) -> str:
    """The first line of google-auth's words; what follows may hold the answer of the token server."""
    return redact(safe(str(error.args[0] if error.args else error))).split("\n")[0][:300]
