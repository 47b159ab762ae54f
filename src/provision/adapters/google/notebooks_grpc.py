"""Notebooks v2 over gRPC (google-cloud-notebooks), with messages converted to REST's form."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from provision.adapters.google import credentials as identity
from provision.adapters.google.endpoints import Endpoints
from provision.adapters.google.errors import CloudError, classify_error
from provision.adapters.google.notebooks import RestResource, UnsupportedByGrpc, to_snake_case
from provision.adapters.google.optional_import import import_optional
from provision.adapters.google.rest import project_from_name
from provision.adapters.google.retry import RetryPolicy, retry_call
from provision.adapters.google.service_errors import ServiceError, parse_operation_error
from provision.adapters.logs import log

T = TypeVar("T")


def is_supported_by_grpc(body: RestResource) -> bool:
    """Return whether the client's messages have every field and value of a body."""
    try:
        _to_message(body)
    except import_optional("google.protobuf.json_format").ParseError:
        return False
    return True


class GrpcNotebooks:
    """Notebooks v2 over gRPC. On loopback the channel is plain, and no proxy is used."""

    def __init__(self, credentials: Any, endpoints: Endpoints, policy: RetryPolicy) -> None:
        self._credentials = credentials
        self._policy = policy
        self._v2 = import_optional("google.cloud.notebooks_v2")
        if endpoints.is_loopback:
            channel = import_optional("grpc").insecure_channel(
                endpoints.notebooks_grpc, options=[("grpc.enable_http_proxy", 0)]
            )
            module = import_optional(
                "google.cloud.notebooks_v2.services.notebook_service.transports"
            )
            self._client = self._v2.NotebookServiceClient(
                transport=module.NotebookServiceGrpcTransport(channel=channel)
            )
        else:
            self._client = self._v2.NotebookServiceClient(
                credentials=credentials, client_options={"api_endpoint": endpoints.notebooks_grpc}
            )

    def get(self, name: str) -> RestResource | None:
        """See NotebooksApi; raises UnsupportedByGrpc too."""
        message = self._call_or_none(
            lambda: self._client.get_instance({"name": name}, timeout=self._policy.call_timeout_s),
            name,
        )
        return None if message is None else to_rest_resource(message)

    def list(self, parent: str) -> tuple[tuple[RestResource, ...], tuple[str, ...]]:
        """See NotebooksApi; raises UnsupportedByGrpc too."""
        pages = self._call(
            lambda: list(
                self._client.list_instances(
                    {"parent": parent}, timeout=self._policy.call_timeout_s
                ).pages
            ),
            parent,
        )
        return tuple(to_rest_resource(item) for page in pages for item in page.instances), tuple(
            sorted({zone for page in pages for zone in page.unreachable})
        )

    def create(self, parent: str, instance: str, body: RestResource, request: str) -> RestResource:
        """See NotebooksApi."""
        message = {
            "parent": parent,
            "instance_id": instance,
            "instance": _to_message(body),
            "request_id": request,
        }
        return self._start_operation(
            lambda: self._client.create_instance(message, timeout=self._policy.call_timeout_s),
            parent,
        )

    def update(self, name: str, body: RestResource, mask: str, request: str) -> RestResource:
        """See NotebooksApi."""
        message = {
            "instance": _to_message({**body, "name": name}),
            "update_mask": {"paths": to_snake_case(mask).split(",")},
            "request_id": request,
        }
        return self._start_operation(
            lambda: self._client.update_instance(message, timeout=self._policy.call_timeout_s), name
        )

    def delete(self, name: str, request: str) -> RestResource | None:
        """See NotebooksApi."""
        message = self._call_or_none(
            lambda: self._client.delete_instance(
                {"name": name, "request_id": request}, timeout=self._policy.call_timeout_s
            ),
            name,
        )
        return None if message is None else _operation_to_rest(message.operation)

    def resize(self, name: str, disk: str, size_gb: str) -> RestResource:
        """Raise UnsupportedByGrpc: this client lacks the call."""
        raise UnsupportedByGrpc(f"resizeDisk of {disk} to {size_gb} GB: {name}")

    def stop(self, name: str) -> RestResource:
        """See NotebooksApi."""
        return self._start_operation(
            lambda: self._client.stop_instance({"name": name}, timeout=self._policy.call_timeout_s),
            name,
        )

    def start(self, name: str) -> RestResource:
        """See NotebooksApi."""
        return self._start_operation(
            lambda: self._client.start_instance(
                {"name": name}, timeout=self._policy.call_timeout_s
            ),
            name,
        )

    def operation(self, name: str) -> RestResource | None:
        """See NotebooksApi."""
        message = self._call_or_none(
            lambda: self._client.get_operation({"name": name}, timeout=self._policy.call_timeout_s),
            name,
        )
        return None if message is None else _operation_to_rest(message)

    def operations(self, parent: str) -> tuple[RestResource, ...]:
        """See NotebooksApi; only the first page, which has the running operations."""
        message = self._call(
            lambda: self._client.list_operations(
                {"name": parent}, timeout=self._policy.call_timeout_s
            ),
            parent,
        )
        return tuple(_operation_to_rest(item) for item in message.operations)

    def _start_operation(self, call: Callable[[], Any], name: str) -> RestResource:
        return _operation_to_rest(self._call(call, name).operation)

    def _call_or_none(self, call: Callable[[], T], name: str) -> T | None:
        try:
            return self._call(call, name)
        except CloudError as error:
            if error.failure.kind == "not-found":
                return None
            raise

    def _call(self, call: Callable[[], T], name: str) -> T:
        return retry_call(
            lambda: _call_once(call, name),
            self._policy,
            lambda: identity.refresh_token(self._credentials, self._policy.call_timeout_s),
        )


def to_rest_resource(message: Any) -> RestResource:
    """Return an instance in REST's form.

    Raises:
        UnsupportedByGrpc: it has a value or field without a name in this client.
    """
    raw = type(message).pb(message)
    if _has_unknown_fields(raw):
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


def _to_message(body: RestResource) -> Any:
    v2 = import_optional("google.cloud.notebooks_v2")
    raw = v2.Instance.pb(v2.Instance())
    import_optional("google.protobuf.json_format").ParseDict(dict(body), raw)
    return v2.Instance.wrap(raw)


def _has_unknown_fields(raw: Any) -> bool:
    """Return whether a message has fields or enum values, also nested ones, without a name."""
    if len(import_optional("google.protobuf.unknown_fields").UnknownFieldSet(raw)):
        return True
    for field, value in raw.ListFields():
        each = _field_values(value)
        if field.enum_type is not None and any(
            number not in field.enum_type.values_by_number for number in each
        ):
            return True
        if field.message_type is not None and any(
            _has_unknown_fields(item) for item in each if hasattr(item, "ListFields")
        ):
            return True
    return False


def _field_values(value: Any) -> list[Any]:
    """Return the values of a field: of a map, of a list, or the single one."""
    if isinstance(value, Mapping):
        return list(value.values())
    return (
        [value]
        if isinstance(value, str | bytes | int | float) or hasattr(value, "ListFields")
        else list(value)
    )


def _name_unknown_enums(document: Any, raw: Any) -> Any:
    """Return the JSON form with the numbers of unnamed enum values as text."""
    for field, value in raw.ListFields():
        written = document.get(field.json_name) if isinstance(document, dict) else None
        if field.enum_type is not None and isinstance(written, int):
            document[field.json_name] = f"UNKNOWN_{written}"
        elif field.message_type is not None and not isinstance(value, Mapping):
            for inner, item in zip(
                written if isinstance(written, list) else [written],
                _field_values(value),
                strict=False,
            ):
                _name_unknown_enums(inner, item)
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


def _call_once(call: Callable[[], T], name: str) -> T:
    exceptions, auth = (
        import_optional("google.api_core.exceptions"),
        import_optional("google.auth.exceptions"),
    )
    log.info("gRPC call on %s", name)
    try:
        return call()
    except exceptions.GoogleAPICallError as error:
        raise CloudError(classify_error(_service_error(error), project_from_name(name))) from error
    except auth.RefreshError as error:
        raise identity.expired_credentials(error) from error
    except (auth.TransportError, exceptions.RetryError) as error:
        raise CloudError(
            classify_error(ServiceError(14, str(error)), project_from_name(name))
        ) from error


def _service_error(error: Any) -> ServiceError:
    status = error.grpc_status_code
    details = [_error_detail(item) for item in error.details or ()]
    parsed = parse_operation_error(
        {"code": status.value[0] if status else 14, "message": error.message, "details": details}
    )
    return ServiceError(
        parsed.code,
        parsed.message,
        error.reason or parsed.reason,
        error.domain or parsed.domain,
        error.metadata or parsed.metadata,
        0,
        parsed.retry_after_s,
    )


def _error_detail(raw: Any) -> dict[str, Any]:
    """Return a detail of an error as JSON, {} for an unknown type."""
    import_optional("google.rpc.error_details_pb2")
    try:
        message: dict[str, Any] = import_optional("google.protobuf.json_format").MessageToDict(raw)
    except (TypeError, ValueError):
        return {}
    return message
