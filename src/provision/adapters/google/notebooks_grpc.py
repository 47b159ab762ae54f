"""Notebooks v2 over gRPC: google-cloud-notebooks, its messages turned into wire form and back."""

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
    """Tell whether the client's messages hold every field and value of a body; the messages
    themselves are asked.
    """
    try:
        _to_message(body)
    except import_optional("google.protobuf.json_format").ParseError:
        return False
    return True


class GrpcNotebooks:
    """Notebooks v2 over gRPC (see Notebooks). On loopback the channel is plain, and no proxy of the
    environment is asked.
    """

    def __init__(self, given: Any, endpoints: Endpoints, policy: RetryPolicy) -> None:
        self._credentials = given
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
                credentials=given, client_options={"api_endpoint": endpoints.notebooks_grpc}
            )

    def get(self, name: str) -> RestResource | None:
        """See Notebooks; raises Inexpressible too."""
        found = self._call_or_none(
            lambda: self._client.get_instance({"name": name}, timeout=self._policy.call_timeout_s),
            name,
        )
        return None if found is None else to_rest_resource(found)

    def list(self, parent: str) -> tuple[tuple[RestResource, ...], tuple[str, ...]]:
        """See Notebooks; raises Inexpressible too."""
        pages = self._call(
            lambda: list(
                self._client.list_instances(
                    {"parent": parent}, timeout=self._policy.call_timeout_s
                ).pages
            ),
            parent,
        )
        return tuple(to_rest_resource(one) for page in pages for one in page.instances), tuple(
            sorted({zone for page in pages for zone in page.unreachable})
        )

    def create(self, parent: str, instance: str, body: RestResource, request: str) -> RestResource:
        """See Notebooks."""
        asked = {
            "parent": parent,
            "instance_id": instance,
            "instance": _to_message(body),
            "request_id": request,
        }
        return self._start_operation(
            lambda: self._client.create_instance(asked, timeout=self._policy.call_timeout_s), parent
        )

    def update(self, name: str, body: RestResource, mask: str, request: str) -> RestResource:
        """See Notebooks."""
        asked = {
            "instance": _to_message({**body, "name": name}),
            "update_mask": {"paths": to_snake_case(mask).split(",")},
            "request_id": request,
        }
        return self._start_operation(
            lambda: self._client.update_instance(asked, timeout=self._policy.call_timeout_s), name
        )

    def delete(self, name: str, request: str) -> RestResource | None:
        """See Notebooks."""
        found = self._call_or_none(
            lambda: self._client.delete_instance(
                {"name": name, "request_id": request}, timeout=self._policy.call_timeout_s
            ),
            name,
        )
        return None if found is None else _operation_to_rest(found.operation)

    def resize(self, name: str, disk: str, size_gb: str) -> RestResource:
        """Raise Inexpressible: this client does not have the call."""
        raise UnsupportedByGrpc(f"resizeDisk of {disk} to {size_gb} GB: {name}")

    def stop(self, name: str) -> RestResource:
        """See Notebooks."""
        return self._start_operation(
            lambda: self._client.stop_instance({"name": name}, timeout=self._policy.call_timeout_s),
            name,
        )

    def start(self, name: str) -> RestResource:
        """See Notebooks."""
        return self._start_operation(
            lambda: self._client.start_instance(
                {"name": name}, timeout=self._policy.call_timeout_s
            ),
            name,
        )

    def operation(self, name: str) -> RestResource | None:
        """See Notebooks."""
        found = self._call_or_none(
            lambda: self._client.get_operation({"name": name}, timeout=self._policy.call_timeout_s),
            name,
        )
        return None if found is None else _operation_to_rest(found)

    def operations(self, parent: str) -> tuple[RestResource, ...]:
        """See Notebooks; the first page only, which holds what is at work."""
        found = self._call(
            lambda: self._client.list_operations(
                {"name": parent}, timeout=self._policy.call_timeout_s
            ),
            parent,
        )
        return tuple(_operation_to_rest(one) for one in found.operations)

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
    """Return an instance's message in wire form; raises Inexpressible where it holds a value or
    field that has no name here.
    """
    raw = type(message).pb(message)
    if _has_unknown_fields(raw):
        raise UnsupportedByGrpc
    return to_rest_resource_lenient(message)


def to_rest_resource_lenient(message: Any) -> RestResource:
    """Return a message in wire form, values that have no name here as UNKNOWN_NUMBER; fields that
    have none are left out.
    """
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
    """Whether a message or one inside it holds fields that its type does not know, or enum values
    without a name.
    """
    if len(import_optional("google.protobuf.unknown_fields").UnknownFieldSet(raw)):
        return True
    for field, value in raw.ListFields():
        each = _field_values(value)
        if field.enum_type is not None and any(
            number not in field.enum_type.values_by_number for number in each
        ):
            return True
        if field.message_type is not None and any(
            _has_unknown_fields(one) for one in each if hasattr(one, "ListFields")
        ):
            return True
    return False


def _field_values(value: Any) -> list[Any]:
    """The values of a field: those of a map, of a list, or the one there is."""
    if isinstance(value, Mapping):
        return list(value.values())
    return (
        [value]
        if isinstance(value, str | bytes | int | float) or hasattr(value, "ListFields")
        else list(value)
    )


def _name_unknown_enums(document: Any, raw: Any) -> Any:
    """The JSON form with numbers of enums, which stand for values without a name, as text."""
    for field, value in raw.ListFields():
        written = document.get(field.json_name) if isinstance(document, dict) else None
        if field.enum_type is not None and isinstance(written, int):
            document[field.json_name] = f"UNKNOWN_{written}"
        elif field.message_type is not None and not isinstance(value, Mapping):
            for inner, one in zip(
                written if isinstance(written, list) else [written],
                _field_values(value),
                strict=False,
            ):
                _name_unknown_enums(inner, one)
    return document


def _operation_to_rest(raw: Any) -> RestResource:
    """An operation in wire form: name, done, metadata (target, verb ...), error. What it made is
    read anew, by name.
    """
    v2 = import_optional("google.cloud.notebooks_v2")
    about = v2.OperationMetadata.pb(v2.OperationMetadata())
    known = raw.metadata.Unpack(about)
    metadata = import_optional("google.protobuf.json_format").MessageToDict(about) if known else {}
    error = {
        "code": raw.error.code,
        "message": raw.error.message,
        "details": [_error_detail(one) for one in raw.error.details],
    }
    return {
        "name": raw.name,
        "done": raw.done,
        "metadata": metadata,
        **({"error": error} if raw.HasField("error") else {}),
    }


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
    details = [_error_detail(one) for one in error.details or ()]
    told = parse_operation_error(
        {"code": status.value[0] if status else 14, "message": error.message, "details": details}
    )
    return ServiceError(
        told.code,
        told.message,
        error.reason or told.reason,
        error.domain or told.domain,
        error.metadata or told.metadata,
        0,
        told.retry_after_s,
    )


def _error_detail(raw: Any) -> dict[str, Any]:
    """A detail of an error as JSON; one of a kind that is not known here is left out."""
    import_optional("google.rpc.error_details_pb2")
    try:
        found: dict[str, Any] = import_optional("google.protobuf.json_format").MessageToDict(raw)
    except (TypeError, ValueError):
        return {}
    return found
