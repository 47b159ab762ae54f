"""Calls of Google's gRPC clients: repeated if that may help, with errors classified as REST's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from provision.adapters.diagnostic_log import log
from provision.adapters.google import credentials as identity
from provision.adapters.google.errors import CloudError, classify_error
from provision.adapters.google.grpc_messages import any_to_rest
from provision.adapters.google.optional_import import import_optional
from provision.adapters.google.rest import project_from_name
from provision.adapters.google.retry import RetryPolicy, retry_call
from provision.adapters.google.service_errors import ServiceError, parse_operation_error


def client_options(transport: str, address: str, credentials: Any, *, loopback: bool) -> Any:
    """Return the arguments of a generated client for an address.

    `transport` is MODULE:CLASS of its gRPC transport. On loopback the channel is plain, and no
    proxy is used.
    """
    if not loopback:
        return {"credentials": credentials, "client_options": {"api_endpoint": address}}
    channel = import_optional("grpc").insecure_channel(
        address, options=[("grpc.enable_http_proxy", 0)]
    )
    module, _, name = transport.partition(":")
    return {"transport": getattr(import_optional(module), name)(channel=channel)}


def call_grpc(
    call: Callable[..., Any],
    name: str,
    request: Mapping[str, Any],
    policy: RetryPolicy,
    credentials: Any,
) -> Any:
    """Call a method of a generated client, repeatedly while its failure is temporary.

    `name` is the resource of the call, for messages. Raises CloudError; may block for minutes.
    """
    timeout_s = policy.call_timeout_s
    return retry_call(
        lambda: _call_once(lambda: call(request, timeout=timeout_s), name),
        policy,
        lambda: identity.refresh_token(credentials, timeout_s),
    )


def _call_once(call: Callable[[], Any], name: str) -> Any:
    exceptions = import_optional("google.api_core.exceptions")
    auth = import_optional("google.auth.exceptions")
    log.info("gRPC call on %s", name)
    try:
        return call()
    except exceptions.GoogleAPICallError as error:
        failure = classify_error(_service_error(error), project_from_name(name))
        raise CloudError(failure) from error
    except auth.RefreshError as error:
        raise identity.expired_credentials(error) from error
    except (auth.TransportError, exceptions.RetryError) as error:
        failure = classify_error(ServiceError(14, str(error)), project_from_name(name))
        raise CloudError(failure) from error


def _service_error(error: Any) -> ServiceError:
    status = error.grpc_status_code
    details = [any_to_rest(item) for item in error.details or ()]
    parsed = parse_operation_error(
        {"code": status.value[0] if status else 14, "message": error.message, "details": details}
    )
    return replace(
        parsed,
        reason=error.reason or parsed.reason,
        domain=error.domain or parsed.domain,
        metadata=error.metadata or parsed.metadata,
        operation=False,
    )
