"""Notebooks v2 over gRPC (google-cloud-notebooks), with messages converted to REST's form."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from provision.adapters.diagnostic_log import log
from provision.adapters.google import credentials as identity
from provision.adapters.google.endpoints import Endpoints
from provision.adapters.google.errors import CloudError, classify_error, none_if_missing
from provision.adapters.google.notebooks import NotebooksApi, RestResource, to_snake_case
from provision.adapters.google.optional_import import import_optional
from provision.adapters.google.rest import RestClient, project_from_name
from provision.adapters.google.retry import RetryPolicy, retry_call
from provision.adapters.google.service_errors import ServiceError, parse_operation_error


class UnsupportedByGrpc(Exception):
    """The messages of the gRPC client lack a field or value."""


class GrpcNotebooks(NotebooksApi):
    """Notebooks v2 over gRPC if its messages have every field, else over REST.

    The gRPC client is behind the service: bodies that it cannot express and calls that it lacks go
    over REST, and after it received something that it cannot name, reads do too. On loopback the
    channel is plain, and no proxy is used.
    """

    def __init__(self, rest: RestClient, endpoints: Endpoints, policy: RetryPolicy) -> None:
        super().__init__(rest, endpoints.notebooks_rest)
        self._policy = policy
        self._is_outdated = False
        options: dict[str, Any] = {
            "credentials": rest.credentials,
            "client_options": {"api_endpoint": endpoints.notebooks_grpc},
        }
        if endpoints.is_loopback:
            channel = import_optional("grpc").insecure_channel(
                endpoints.notebooks_grpc, options=[("grpc.enable_http_proxy", 0)]
            )
            transports = import_optional(
                "google.cloud.notebooks_v2.services.notebook_service.transports"
            )
            options = {"transport": transports.NotebookServiceGrpcTransport(channel=channel)}
        v2 = import_optional("google.cloud.notebooks_v2")
        self._client = v2.NotebookServiceClient(**options)

    def get(self, name: str) -> RestResource | None:
        """See NotebooksApi."""
        if not self._is_outdated:
            try:
                message = self._call_or_none(self._client.get_instance, name, {"name": name})
                return None if message is None else to_rest_resource(message)
            except UnsupportedByGrpc:
                self._is_outdated = True
        return super().get(name)

    def list(self, parent: str) -> tuple[tuple[RestResource, ...], tuple[str, ...]]:
        """See NotebooksApi."""

        def list_pages(request: Any, timeout: float) -> Any:
            return tuple(self._client.list_instances(request, timeout=timeout).pages)

        if not self._is_outdated:
            try:
                pages = self._call(list_pages, parent, {"parent": parent})
                instances = tuple(
                    to_rest_resource(item) for page in pages for item in page.instances
                )
            except UnsupportedByGrpc:
                self._is_outdated = True
            else:
                unreachable = {zone for page in pages for zone in page.unreachable}
                return instances, tuple(sorted(unreachable))
        return super().list(parent)

    def create(self, parent: str, instance: str, body: RestResource, request: str) -> RestResource:
        """See NotebooksApi."""
        message = to_message(body)
        if message is None:
            return super().create(parent, instance, body, request)
        fields = {"instance_id": instance, "instance": message, "request_id": request}
        return self._start_operation(
            self._client.create_instance, parent, {"parent": parent, **fields}
        )

    def update(self, name: str, body: RestResource, mask: str, request: str) -> RestResource:
        """See NotebooksApi."""
        message = to_message({**body, "name": name})
        if message is None:
            return super().update(name, body, mask, request)
        paths = {"paths": to_snake_case(mask).split(",")}
        fields = {"instance": message, "update_mask": paths, "request_id": request}
        return self._start_operation(self._client.update_instance, name, fields)

    def delete(self, name: str, request: str) -> RestResource | None:
        """See NotebooksApi."""
        fields = {"name": name, "request_id": request}
        message = self._call_or_none(self._client.delete_instance, name, fields)
        return None if message is None else _operation_to_rest(message.operation)

    def stop(self, name: str) -> RestResource:
        """See NotebooksApi."""
        return self._start_operation(self._client.stop_instance, name, {"name": name})

    def start(self, name: str) -> RestResource:
        """See NotebooksApi."""
        return self._start_operation(self._client.start_instance, name, {"name": name})

    def operation(self, name: str) -> RestResource | None:
        """See NotebooksApi."""
        message = self._call_or_none(self._client.get_operation, name, {"name": name})
        return None if message is None else _operation_to_rest(message)

    def operations(self, parent: str) -> tuple[RestResource, ...]:
        """See NotebooksApi; only the first page, which has the running operations."""
        message = self._call(self._client.list_operations, parent, {"name": parent})
        return tuple(_operation_to_rest(item) for item in message.operations)

    def _start_operation(
        self, call: Callable[..., Any], name: str, request: Mapping[str, Any]
    ) -> RestResource:
        return _operation_to_rest(self._call(call, name, request).operation)

    def _call_or_none(
        self, call: Callable[..., Any], name: str, request: Mapping[str, Any]
    ) -> Any | None:
        return none_if_missing(lambda: self._call(call, name, request))

    def _call(self, call: Callable[..., Any], name: str, request: Mapping[str, Any]) -> Any:
        timeout_s = self._policy.call_timeout_s
        return retry_call(
            lambda: _call_once(lambda: call(request, timeout=timeout_s), name),
            self._policy,
            lambda: identity.refresh_token(self._rest.credentials, timeout_s),
        )


def to_rest_resource(message: Any) -> RestResource:
    """Return an instance in REST's form.

    Raises:
        UnsupportedByGrpc: it has a value or field without a name in this client.
    """
    if _has_unknown_fields(type(message).pb(message)):
        raise UnsupportedByGrpc
    return to_rest_resource_lenient(message)


def to_rest_resource_lenient(message: Any) -> RestResource:
    """Return a message in REST's form, with unnamed values as UNKNOWN_NUMBER."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        raw = type(message).pb(message)
        document: RestResource = _name_unknown_enums(
            import_optional("google.protobuf.json_format").MessageToDict(raw), raw
        )
    return document


def to_message(body: RestResource) -> Any | None:
    """Return a body as a message, None if the client's messages lack a field or value of it."""
    v2 = import_optional("google.cloud.notebooks_v2")
    json_format = import_optional("google.protobuf.json_format")
    raw = v2.Instance.pb(v2.Instance())
    try:
        json_format.ParseDict(dict(body), raw)
    except json_format.ParseError:
        return None
    return v2.Instance.wrap(raw)


def _has_unknown_fields(raw: Any) -> bool:
    """Return whether a message has fields or enum values, also nested ones, without a name."""
    if len(import_optional("google.protobuf.unknown_fields").UnknownFieldSet(raw)):
        return True
    for field, value in raw.ListFields():
        for item in _field_values(value):
            if field.enum_type is not None and item not in field.enum_type.values_by_number:
                return True
            if hasattr(item, "ListFields") and _has_unknown_fields(item):
                return True
    return False


def _field_values(value: Any) -> list[Any]:
    """Return the values of a field: of a map, of a list, or the single one."""
    if isinstance(value, Mapping):
        return list(value.values())
    is_single = isinstance(value, str | bytes | int | float) or hasattr(value, "ListFields")
    return [value] if is_single else list(value)


def _name_unknown_enums(document: Any, raw: Any) -> Any:
    """Return the JSON form with the numbers of unnamed enum values as text."""
    for field, value in raw.ListFields():
        written = document.get(field.json_name) if isinstance(document, dict) else None
        if field.enum_type is not None and isinstance(written, int):
            document[field.json_name] = f"UNKNOWN_{written}"
        elif field.message_type is not None and not isinstance(value, Mapping):
            inner = written if isinstance(written, list) else [written]
            for part, item in zip(inner, _field_values(value), strict=False):
                _name_unknown_enums(part, item)
    return document


def _operation_to_rest(raw: Any) -> RestResource:
    """Return an operation in REST's form: name, done, metadata (target, verb ...), error."""
    v2 = import_optional("google.cloud.notebooks_v2")
    metadata_message = v2.OperationMetadata.pb(v2.OperationMetadata())
    operation = {"name": raw.name, "done": raw.done, "metadata": {}}
    if raw.metadata.Unpack(metadata_message):
        json_format = import_optional("google.protobuf.json_format")
        operation["metadata"] = json_format.MessageToDict(metadata_message)
    if raw.HasField("error"):
        operation["error"] = {
            "code": raw.error.code,
            "message": raw.error.message,
            "details": [_error_detail(item) for item in raw.error.details],
        }
    return operation


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
    details = [_error_detail(item) for item in error.details or ()]
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


def _error_detail(raw: Any) -> dict[str, Any]:
    """Return a detail of an error as JSON, {} for an unknown type."""
    import_optional("google.rpc.error_details_pb2")
    try:
        message: dict[str, Any] = import_optional("google.protobuf.json_format").MessageToDict(raw)
    except (TypeError, ValueError):
        return {}
    return message
