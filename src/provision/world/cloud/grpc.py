"""Notebooks v2 over gRPC: google-cloud-notebooks, its messages turned into wire form and back."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from provision.world.cloud import credentials as identity
from provision.world.cloud.endpoints import Endpoints
from provision.world.cloud.extra import need
from provision.world.cloud.failures import CloudError, classify
from provision.world.cloud.faults import Fault, of_operation
from provision.world.cloud.notebooks import Inexpressible, Wire, snake
from provision.world.cloud.pace import Pace, repeated
from provision.world.cloud.rest import project_of

T = TypeVar("T")


def expressible(body: Wire) -> bool:
    """Tell whether the client's messages hold every field and value of a body; the messages themselves are asked."""
    try:
        _message(body)
    except need("google.protobuf.json_format").ParseError:
        return False
    return True


class OverGrpc:
    """Notebooks v2 over gRPC (see Notebooks). On loopback the channel is plain, and no proxy of the environment is asked."""

    def __init__(self, given: Any, endpoints: Endpoints, pace: Pace) -> None:
        self._given = given
        self._pace = pace
        self._v2 = need("google.cloud.notebooks_v2")
        if endpoints.loopback:
            channel = need("grpc").insecure_channel(endpoints.notebooks_grpc, options=[("grpc.enable_http_proxy", 0)])
            module = need("google.cloud.notebooks_v2.services.notebook_service.transports")
            self._client = self._v2.NotebookServiceClient(transport=module.NotebookServiceGrpcTransport(channel=channel))
        else:
            self._client = self._v2.NotebookServiceClient(credentials=given, client_options={"api_endpoint": endpoints.notebooks_grpc})

    def get(self, name: str) -> Wire | None:
        """See Notebooks; raises Inexpressible too."""
        found = self._found(lambda: self._client.get_instance({"name": name}, timeout=self._pace.answer_s), name)
        return None if found is None else wire(found)

    def list(self, parent: str) -> tuple[tuple[Wire, ...], tuple[str, ...]]:
        """See Notebooks; raises Inexpressible too."""
        pages = self._call(lambda: list(self._client.list_instances({"parent": parent}, timeout=self._pace.answer_s).pages), parent)
        return tuple(wire(one) for page in pages for one in page.instances), tuple(sorted({zone for page in pages for zone in page.unreachable}))

    def create(self, parent: str, instance: str, body: Wire, request: str) -> Wire:
        """See Notebooks."""
        asked = {"parent": parent, "instance_id": instance, "instance": _message(body), "request_id": request}
        return self._begun(lambda: self._client.create_instance(asked, timeout=self._pace.answer_s), parent)

    def update(self, name: str, body: Wire, mask: str, request: str) -> Wire:
        """See Notebooks."""
        asked = {"instance": _message({**body, "name": name}), "update_mask": {"paths": snake(mask).split(",")}, "request_id": request}
        return self._begun(lambda: self._client.update_instance(asked, timeout=self._pace.answer_s), name)

    def delete(self, name: str, request: str) -> Wire | None:
        """See Notebooks."""
        found = self._found(lambda: self._client.delete_instance({"name": name, "request_id": request}, timeout=self._pace.answer_s), name)
        return None if found is None else _operation(found.operation)

    def resize(self, name: str, disk: str, size_gb: str) -> Wire:
        """Raise Inexpressible: this client does not have the call."""
        raise Inexpressible(f"resizeDisk of {disk} to {size_gb} GB: {name}")

    def stop(self, name: str) -> Wire:
        """See Notebooks."""
        return self._begun(lambda: self._client.stop_instance({"name": name}, timeout=self._pace.answer_s), name)

    def start(self, name: str) -> Wire:
        """See Notebooks."""
        return self._begun(lambda: self._client.start_instance({"name": name}, timeout=self._pace.answer_s), name)

    def operation(self, name: str) -> Wire | None:
        """See Notebooks."""
        found = self._found(lambda: self._client.get_operation({"name": name}, timeout=self._pace.answer_s), name)
        return None if found is None else _operation(found)

    def operations(self, parent: str) -> tuple[Wire, ...]:
        """See Notebooks; the first page only, which holds what is at work."""
        found = self._call(lambda: self._client.list_operations({"name": parent}, timeout=self._pace.answer_s), parent)
        return tuple(_operation(one) for one in found.operations)

    def _begun(self, call: Callable[[], Any], name: str) -> Wire:
        return _operation(self._call(call, name).operation)

    def _found(self, call: Callable[[], T], name: str) -> T | None:
        try:
            return self._call(call, name)
        except CloudError as error:
            if error.failure.kind == "not-found":
                return None
            raise

    def _call(self, call: Callable[[], T], name: str) -> T:
        return repeated(lambda: _once(call, name), self._pace, lambda: identity.refresh(self._given, self._pace.answer_s))


def wire(message: Any) -> Wire:
    """Return an instance's message in wire form; raises Inexpressible where it holds a value or field that has no name here."""
    raw = type(message).pb(message)
    if _nameless(raw):
        raise Inexpressible
    return tolerant(message)


def tolerant(message: Any) -> Wire:
    """Return a message in wire form, values that have no name here as UNKNOWN_NUMBER; fields that have none are left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        raw = type(message).pb(message)
        document: Wire = _named(need("google.protobuf.json_format").MessageToDict(raw), raw)
    return document


def _message(body: Wire) -> Any:
    v2 = need("google.cloud.notebooks_v2")
    raw = v2.Instance.pb(v2.Instance())
    need("google.protobuf.json_format").ParseDict(dict(body), raw)
    return v2.Instance.wrap(raw)


def _nameless(raw: Any) -> bool:
    """Whether a message or one inside it holds fields that its type does not know, or enum values without a name."""
    if len(need("google.protobuf.unknown_fields").UnknownFieldSet(raw)):
        return True
    for field, value in raw.ListFields():
        each = _each(value)
        if field.enum_type is not None and any(number not in field.enum_type.values_by_number for number in each):
            return True
        if field.message_type is not None and any(_nameless(one) for one in each if hasattr(one, "ListFields")):
            return True
    return False


def _each(value: Any) -> list[Any]:
    """The values of a field: those of a map, of a list, or the one there is."""
    if isinstance(value, Mapping):
        return list(value.values())
    return [value] if isinstance(value, str | bytes | int | float) or hasattr(value, "ListFields") else list(value)


def _named(document: Any, raw: Any) -> Any:
    """The JSON form with numbers of enums, which stand for values without a name, as text."""
    for field, value in raw.ListFields():
        written = document.get(field.json_name) if isinstance(document, dict) else None
        if field.enum_type is not None and isinstance(written, int):
            document[field.json_name] = f"UNKNOWN_{written}"
        elif field.message_type is not None and not isinstance(value, Mapping):
            for inner, one in zip(written if isinstance(written, list) else [written], _each(value), strict=False):
                _named(inner, one)
    return document


def _operation(raw: Any) -> Wire:
    """An operation in wire form: name, done, metadata (target, verb ...), error. What it made is read anew, by name."""
    v2 = need("google.cloud.notebooks_v2")
    about = v2.OperationMetadata.pb(v2.OperationMetadata())
    known = raw.metadata.Unpack(about)
    metadata = need("google.protobuf.json_format").MessageToDict(about) if known else {}
    error = {"code": raw.error.code, "message": raw.error.message, "details": [_detail(one) for one in raw.error.details]}
    return {"name": raw.name, "done": raw.done, "metadata": metadata, **({"error": error} if raw.HasField("error") else {})}


def _once(call: Callable[[], T], name: str) -> T:
    exceptions, auth = need("google.api_core.exceptions"), need("google.auth.exceptions")
    try:
        return call()
    except exceptions.GoogleAPICallError as error:
        raise CloudError(classify(_fault(error), project_of(name))) from error
    except auth.RefreshError as error:
        raise identity.stale(error) from error
    except (auth.TransportError, exceptions.RetryError) as error:
        raise CloudError(classify(Fault(14, str(error)), project_of(name))) from error


def _fault(error: Any) -> Fault:
    status = error.grpc_status_code
    details = [_detail(one) for one in error.details or ()]
    told = of_operation({"code": status.value[0] if status else 14, "message": error.message, "details": details})
    return Fault(told.code, told.message, error.reason or told.reason, error.domain or told.domain, error.metadata or told.metadata, 0, told.retry_after_s)


def _detail(raw: Any) -> dict[str, Any]:
    """A detail of an error as JSON; one of a kind that is not known here is left out."""
    need("google.rpc.error_details_pb2")
    try:
        found: dict[str, Any] = need("google.protobuf.json_format").MessageToDict(raw)
    except (TypeError, ValueError):
        return {}
    return found
