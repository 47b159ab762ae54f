"""The emulated runtimes of Vertex AI: people's machines, made from a template.

Only their records are emulated: no machine runs, and nothing executes code on them.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from provision.sandbox.api_errors import ApiError, StatusCode, invalid_argument, resource_not_found
from provision.sandbox.discovery import VERTEX, VERTEX_PREFIX
from provision.sandbox.instance_validation import check_labels
from provision.sandbox.request_validation import validate_body
from provision.sandbox.store import utc_timestamp
from provision.sandbox.template_validation import check_template_id
from provision.sandbox.vertex_service import VertexService, begin_operation

Body = dict[str, Any]
_FROM_TEMPLATE = (
    "machineSpec",
    "dataPersistentDiskSpec",
    "networkSpec",
    "idleShutdownConfig",
    "shieldedVmConfig",
    "softwareConfig",
    "encryptionSpec",
    "reservationAffinity",
    "notebookRuntimeType",
)
"""Output-only fields of a runtime that are those of its template (aiplatform v1)."""


class NotebookRuntimes:
    """The service over a store. Names are full resource names; methods raise ApiError to refuse."""

    def __init__(self, vertex: VertexService) -> None:
        self._vertex = vertex

    def assign(self, parent: str, request: Any) -> Body:
        """Start to create the runtime of a user, or return the one of this user and template."""
        _, region = self._vertex.admit(parent)
        message = f"{VERTEX_PREFIX}AssignNotebookRuntimeRequest"
        asked = validate_body(request, message, "assign_notebook_runtime_request", VERTEX)
        runtime, template = asked.get("notebookRuntime", {}), asked.get("notebookRuntimeTemplate")
        for field in ("runtimeUser", "displayName"):
            if field not in runtime:
                raise invalid_argument(f"'notebook_runtime.{field}' is required")
        check_labels(runtime.get("labels", {}))
        short_name = asked.get("notebookRuntimeId", "")
        if short_name:
            check_template_id(short_name)
        with self._vertex.store.edit_data() as data:
            if template not in data["templates"]:
                raise resource_not_found(str(template))
            name = f"{parent}/notebookRuntimes/{short_name or uuid.uuid4().int % 10**19}"
            existing = _find_assigned(data, parent, name, runtime["runtimeUser"], str(template))
            if existing is None:
                if self._vertex.faults.has("stockout", region):
                    raise _stockout_error(data["templates"][template], name)
                data["runtimes"][name] = _stored(name, runtime, data["templates"][template])
            return self._begin(data, "AssignNotebookRuntime", existing or name)

    def get(self, name: str) -> Body:
        """Return a runtime."""
        self._vertex.admit(name)
        with self._vertex.store.read_data() as data:
            return dict(_runtime(data, name))

    def list_runtimes(self, parent: str) -> Body:
        """Return the runtimes of a region."""
        self._vertex.admit(parent)
        with self._vertex.store.read_data() as data:
            found = [
                dict(body)
                for name, body in sorted(data["runtimes"].items())
                if name.startswith(f"{parent}/")
            ]
        return {"notebookRuntimes": found} if found else {}

    def start(self, name: str) -> Body:
        """Start a stopped runtime."""
        return self._change_state(name, "StartNotebookRuntime", "STOPPED", "RUNNING")

    def stop(self, name: str) -> Body:
        """Stop a running runtime."""
        return self._change_state(name, "StopNotebookRuntime", "RUNNING", "STOPPED")

    def upgrade(self, name: str) -> Body:
        """Refuse to upgrade a runtime: those of the sandbox are always the newest."""
        self._vertex.admit(name, changes=True)
        with self._vertex.store.read_data() as data:
            _runtime(data, name)
        raise _state_error(f"Notebook runtime '{name}' is not upgradable")

    def delete(self, name: str) -> Body:
        """Start to delete a runtime."""
        self._vertex.admit(name, changes=True)
        with self._vertex.store.edit_data() as data:
            _runtime(data, name)
            operation = self._begin(data, "DeleteNotebookRuntime", name)
            del data["runtimes"][name]
            return operation

    def _change_state(self, name: str, verb: str, before: str, after: str) -> Body:
        self._vertex.admit(name, changes=True)
        with self._vertex.store.edit_data() as data:
            runtime = _runtime(data, name)
            if runtime["runtimeState"] != before:
                state = runtime["runtimeState"]
                raise _state_error(f"Notebook runtime '{name}' is in the state {state}")
            runtime |= {"runtimeState": after, "updateTime": utc_timestamp()}
            return self._begin(data, verb, name)

    def _begin(self, data: Body, verb: str, name: str) -> Body:
        return begin_operation(data, verb, name, self._vertex.operation_end_time())


def _find_assigned(data: Body, parent: str, name: str, user: str, template: str) -> str | None:
    """Return the runtime with a name, else a running one of a user that a template made.

    Raises:
        ApiError: the name is that of another user's runtime.
    """
    for other, body in data["runtimes"].items():
        is_own = (body["runtimeUser"], _template_of(body)) == (user, template)
        if other == name and not is_own:
            raise ApiError(
                StatusCode.ALREADY_EXISTS,
                f"Resource '{name}' already exists",
                reason="alreadyExists",
            )
        is_running = other.startswith(f"{parent}/") and body["runtimeState"] == "RUNNING"
        if is_own and (other == name or is_running):
            return str(other)
    return None


def _template_of(runtime: Mapping[str, Any]) -> str:
    return str(runtime["notebookRuntimeTemplateRef"]["notebookRuntimeTemplate"])


def _runtime(data: Body, name: str) -> Body:
    if name not in data["runtimes"]:
        raise resource_not_found(name)
    body: Body = data["runtimes"][name]
    return body


def _stored(name: str, requested: Body, template: Body) -> Body:
    created = utc_timestamp()
    return {
        **{key: template[key] for key in _FROM_TEMPLATE if key in template},
        **requested,
        "name": name,
        "notebookRuntimeTemplateRef": {"notebookRuntimeTemplate": template["name"]},
        "runtimeState": "RUNNING",
        "healthState": "HEALTHY",
        "createTime": created,
        "updateTime": created,
    }


def _state_error(message: str) -> ApiError:
    return ApiError(StatusCode.FAILED_PRECONDITION, message, reason="failedPrecondition")


def _stockout_error(template: Body, name: str) -> ApiError:
    """Return the refusal in the words of Colab Enterprise's page about runtimes."""
    machine = template["machineSpec"]
    return ApiError(
        StatusCode.RESOURCE_EXHAUSTED,
        f"No available zone found for runtime {name.rpartition('/')[2]} for machine type "
        f"{machine['machineType']} with accelerator type: "
        f"{machine.get('acceleratorType', 'ACCELERATOR_TYPE_UNSPECIFIED')}. Please try again "
        "later.",
    )
