"""The emulated Vertex AI service (aiplatform v1) for notebooks: runtime templates."""

from __future__ import annotations

import copy
import time
import uuid
from typing import Any

from provision.facts import Facts
from provision.sandbox.api_errors import (
    ApiError,
    StatusCode,
    invalid_argument,
    resource_not_found,
)
from provision.sandbox.discovery import VERTEX, VERTEX_PREFIX
from provision.sandbox.faults import Faults
from provision.sandbox.injected_faults import (
    VERTEX_API,
    raise_lost_answer,
    raise_request_fault,
)
from provision.sandbox.lifecycle import Delays
from provision.sandbox.operations import ENDLESS
from provision.sandbox.request_validation import to_camel_case, validate_body, value_at_path
from provision.sandbox.store import Store, utc_timestamp
from provision.sandbox.template_validation import (
    check_software,
    check_template,
    check_template_id,
    parse_template_mask,
    parse_template_name,
)

Body = dict[str, Any]
_TYPES = "type.googleapis.com/google.cloud.aiplatform.v1"


class VertexService:
    """The service over a store. Names are full resource names; methods raise ApiError to refuse."""

    def __init__(self, store: Store, facts: Facts, faults: Faults, delays: Delays) -> None:
        self.store, self._facts, self.faults, self._delays = store, facts, faults, delays

    def create_template(self, parent: str, template_id: str, body: Any) -> Body:
        """Start to create a template; there is no request id by which a call is recognized."""
        _, region = self.admit(parent)
        template = template_id or str(uuid.uuid4().int)[:19]
        if template_id:
            check_template_id(template_id)
        requested = _validated(body)
        check_template(requested, region, self._facts)
        name = f"{parent}/notebookRuntimeTemplates/{template}"
        with self.store.edit_data() as data:
            if self.faults.has("exists") and name not in data["templates"]:
                foreign = {"displayName": "foreign", "labels": {"owner": "somebody-else"}}
                data["templates"][name] = _stored(name, foreign)
            if name in data["templates"]:
                raise ApiError(
                    StatusCode.ALREADY_EXISTS,
                    f"Resource '{name}' already exists",
                    reason="alreadyExists",
                )
            data["templates"][name] = _stored(name, requested)
            operation = begin_operation(
                data, "CreateNotebookRuntimeTemplate", name, self.operation_end_time()
            )
        raise_lost_answer(self.faults)
        return operation

    def get_template(self, name: str) -> Body:
        """Return a template."""
        self.admit(name)
        with self.store.read_data() as data:
            return _shown(_template(data, name))

    def list_templates(self, parent: str, size: int = 0, token: str = "") -> Body:
        """Return the templates of a region."""
        self.admit(parent)
        with self.store.read_data() as data:
            bodies = [
                _shown(body)
                for name, body in sorted(data["templates"].items())
                if name.startswith(f"{parent}/")
            ]
        first = int(token) if token.isdecimal() else 0
        last = first + (size or 100)
        page: Body = {"notebookRuntimeTemplates": bodies[first:last]} if bodies else {}
        if last < len(bodies):
            page["nextPageToken"] = str(last)
        return page

    def patch_template(self, name: str, body: Any, mask: str) -> Body:
        """Change the fields of a mask and return the template; this is not an operation."""
        self.admit(name, changes=True)
        requested = _validated({key: value for key, value in body.items() if key != "name"})
        with self.store.edit_data() as data:
            current = _template(data, name)
            paths = parse_template_mask(mask)
            if requested.get("etag", current["etag"]) != current["etag"]:
                raise ApiError(StatusCode.ABORTED, "The etag does not match the current one.")
            changed = _with_paths(current, requested, paths)
            check_software(changed.get("softwareConfig", {}))
            data["templates"][name] = {
                **changed,
                "updateTime": utc_timestamp(),
                "etag": uuid.uuid4().hex[:16],
            }
            return _shown(data["templates"][name])

    def delete_template(self, name: str) -> Body:
        """Start to delete a template."""
        self.admit(name, changes=True)
        with self.store.edit_data() as data:
            _template(data, name)
            operation = begin_operation(
                data, "DeleteNotebookRuntimeTemplate", name, self.operation_end_time()
            )
            del data["templates"][name]
            return operation

    def operation(self, name: str) -> Body:
        """Return an operation."""
        self.admit(name)
        with self.store.edit_data() as data:
            if self.faults.has("lost-operation"):
                data["vertex_operations"].pop(name, None)
            if name not in data["vertex_operations"]:
                raise resource_not_found(name)
            return _operation_shown(data, name)

    def admit(self, name: str, *, changes: bool = False) -> tuple[str, str]:
        """Return the project and region of a name. Raises ApiError for a fault of any request."""
        project, region = parse_template_name(name, self._facts)
        changed = name if changes else ""
        raise_request_fault(self.faults, project, changes=changed, api=VERTEX_API)
        return project, region

    def operation_end_time(self) -> float:
        """Return the end of an operation that begins now, in seconds since the epoch."""
        return ENDLESS if self.faults.has("hang") else time.time() + self._delays.operation


def begin_operation(data: Body, verb: str, target: str, due: float) -> Body:
    """Begin an operation; the name of Vertex AI's operations begins with that of its target."""
    name = f"{target}/operations/{uuid.uuid4().int % 10**19}"
    data["vertex_operations"][name] = {
        "target": target,
        "verb": verb,
        "created": utc_timestamp(),
        "due": due,
    }
    return _operation_shown(data, name)


def _validated(body: Any) -> Body:
    if not isinstance(body, dict):
        raise invalid_argument("Invalid value at 'notebook_runtime_template'")
    message = f"{VERTEX_PREFIX}NotebookRuntimeTemplate"
    return validate_body(body, message, "notebook_runtime_template", VERTEX)


def _stored(name: str, requested: Body) -> Body:
    """Return a new template with what the service adds."""
    created = utc_timestamp()
    return {
        "machineSpec": {"machineType": "e2-standard-4"},
        "dataPersistentDiskSpec": {"diskType": "pd-standard", "diskSizeGb": "100"},
        "notebookRuntimeType": "USER_DEFINED",
        **requested,
        "name": name,
        "createTime": created,
        "updateTime": created,
        "etag": uuid.uuid4().hex[:16],
    }


def _shown(body: Body) -> Body:
    """Return a template as the service shows it: without what is only input."""
    return {key: value for key, value in body.items() if key != "eucConfig"}


def _template(data: Body, name: str) -> Body:
    if name not in data["templates"]:
        raise resource_not_found(name)
    body: Body = data["templates"][name]
    return body


def _with_paths(current: Body, requested: Body, paths: tuple[str, ...]) -> Body:
    """Return a template whose values at some paths are those of a request; unset ones are gone."""
    changed: Body = copy.deepcopy(current)
    for path in paths:
        *above, last = map(to_camel_case, path.split("."))
        parent = changed
        for key in above:
            parent = parent.setdefault(key, {})
        value = value_at_path(requested, path)
        if value is None:
            parent.pop(last, None)
        else:
            parent[last] = value
    return changed


def _operation_shown(data: Body, name: str) -> Body:
    record = data["vertex_operations"][name]
    times = {"createTime": record["created"], "updateTime": record["created"]}
    # A deletion has the common metadata: google/cloud/aiplatform/v1/notebook_service.proto.
    verb = "Delete" if record["verb"].startswith("Delete") else record["verb"]
    metadata = {
        "@type": f"{_TYPES}.{verb}OperationMetadata",
        "genericMetadata": times,
    }
    if record["due"] > time.time():
        return {"name": name, "metadata": metadata}
    response: Body = {"@type": "type.googleapis.com/google.protobuf.Empty"}
    if record["verb"].startswith(("Create", "Assign")):
        kind = record["verb"].removeprefix("Create").removeprefix("Assign")
        resources = {**data["templates"], **data["executions"], **data["runtimes"]}
        body = resources.get(record["target"], {})
        response = {"@type": f"{_TYPES}.{kind}", **_shown(body)}
    elif not record["verb"].startswith("Delete"):
        response = {"@type": f"{_TYPES}.{record['verb']}Response"}
    return {"name": name, "metadata": metadata, "done": True, "response": response}
