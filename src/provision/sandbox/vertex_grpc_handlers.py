"""gRPC handlers of the emulated Vertex AI API, with the messages of google-cloud-aiplatform."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any

from google.longrunning import operations_pb2
from google.protobuf import json_format

from provision.lean_import import skip_package_init
from provision.sandbox.execution_jobs import ExecutionJobs
from provision.sandbox.grpc_messages import method_handler, to_json, to_message
from provision.sandbox.notebook_runtimes import NotebookRuntimes
from provision.sandbox.notebooks_service import filter_unsupported_error
from provision.sandbox.vertex_service import VertexService

_PACKAGE = "google.cloud.aiplatform_v1"
_SERVICE = "google.cloud.aiplatform.v1.NotebookService"


class VertexMethods:
    """The methods of Vertex AI's NotebookService that the sandbox has.

    Raises:
        ModuleNotFoundError: google-cloud-aiplatform is not installed.
    """

    def __init__(self, service: VertexService, jobs: ExecutionJobs) -> None:
        self._service, self._jobs, self._runtimes = service, jobs, NotebookRuntimes(service)
        skip_package_init(_PACKAGE, f"{_PACKAGE}.services", f"{_PACKAGE}.types")
        self._requests = import_module(f"{_PACKAGE}.types.notebook_service")
        self._template = import_module(f"{_PACKAGE}.types.notebook_runtime").NotebookRuntimeTemplate
        self._job = import_module(f"{_PACKAGE}.types.notebook_execution_job").NotebookExecutionJob
        self._runtime = import_module(f"{_PACKAGE}.types.notebook_runtime").NotebookRuntime
        self.handlers = self._build_handlers()
        """The gRPC handler of each method, by its full name (/SERVICE/METHOD)."""

    def get_operation(self, request: Any) -> Any:
        """Return an operation of this service."""
        return _operation_message(self._service.operation(request.name))

    def _build_handlers(self) -> dict[str, Any]:
        methods: dict[str, Callable[[Any], Any]] = {
            "CreateNotebookRuntimeTemplate": self._create_template,
            "GetNotebookRuntimeTemplate": self._get_template,
            "ListNotebookRuntimeTemplates": self._list_templates,
            "UpdateNotebookRuntimeTemplate": self._update_template,
            "DeleteNotebookRuntimeTemplate": partial(_by_name, self._service.delete_template),
            "CreateNotebookExecutionJob": self._create_job,
            "GetNotebookExecutionJob": self._get_job,
            "ListNotebookExecutionJobs": self._list_jobs,
            "DeleteNotebookExecutionJob": partial(_by_name, self._jobs.delete),
            "AssignNotebookRuntime": self._assign_runtime,
            "GetNotebookRuntime": self._get_runtime,
            "ListNotebookRuntimes": self._list_runtimes,
            "StartNotebookRuntime": partial(_by_name, self._runtimes.start),
            "StopNotebookRuntime": partial(_by_name, self._runtimes.stop),
            "UpgradeNotebookRuntime": partial(_by_name, self._runtimes.upgrade),
            "DeleteNotebookRuntime": partial(_by_name, self._runtimes.delete),
        }
        return {
            f"/{_SERVICE}/{name}": method_handler(
                method, getattr(self._requests, f"{name}Request").deserialize
            )
            for name, method in methods.items()
        }

    def _create_template(self, request: Any) -> Any:
        template = request.notebook_runtime_template_id
        body = to_json(request.notebook_runtime_template)
        return _operation_message(self._service.create_template(request.parent, template, body))

    def _get_template(self, request: Any) -> Any:
        return to_message(self._service.get_template(request.name), self._template())

    def _list_templates(self, request: Any) -> Any:
        if request.filter or request.order_by or request.read_mask.paths:
            raise filter_unsupported_error()
        page = self._service.list_templates(request.parent, request.page_size, request.page_token)
        response = self._requests.ListNotebookRuntimeTemplatesResponse()
        return to_message(page, response, "notebookRuntimeTemplates")

    def _update_template(self, request: Any) -> Any:
        template, mask = request.notebook_runtime_template, ",".join(request.update_mask.paths)
        changed = self._service.patch_template(template.name, to_json(template), mask)
        return to_message(changed, self._template())

    def _create_job(self, request: Any) -> Any:
        job, body = request.notebook_execution_job_id, to_json(request.notebook_execution_job)
        return _operation_message(self._jobs.create(request.parent, job, body))

    def _get_job(self, request: Any) -> Any:
        return to_message(self._jobs.get(request.name), self._job())

    def _list_jobs(self, request: Any) -> Any:
        if request.filter or request.order_by or request.page_token:
            raise filter_unsupported_error()
        response = self._requests.ListNotebookExecutionJobsResponse()
        page = self._jobs.list_jobs(request.parent)
        return to_message(page, response, "notebookExecutionJobs")

    def _assign_runtime(self, request: Any) -> Any:
        body = {
            "notebookRuntimeTemplate": request.notebook_runtime_template,
            "notebookRuntime": to_json(request.notebook_runtime),
            "notebookRuntimeId": request.notebook_runtime_id,
        }
        return _operation_message(self._runtimes.assign(request.parent, body))

    def _get_runtime(self, request: Any) -> Any:
        return to_message(self._runtimes.get(request.name), self._runtime())

    def _list_runtimes(self, request: Any) -> Any:
        if request.filter or request.order_by or request.page_token or request.read_mask.paths:
            raise filter_unsupported_error()
        response = self._requests.ListNotebookRuntimesResponse()
        page = self._runtimes.list_runtimes(request.parent)
        return to_message(page, response, "notebookRuntimes")


def _by_name(begin: Callable[[str], Mapping[str, Any]], request: Any) -> Any:
    return _operation_message(begin(request.name))


def _operation_message(body: Mapping[str, Any]) -> Any:
    """Return an operation as its message, with its packed metadata and result."""
    return json_format.ParseDict(dict(body), operations_pb2.Operation(), ignore_unknown_fields=True)
