"""The gRPC server; its messages are loaded at the first call, to keep REST fast."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

import grpc

from provision.sandbox.execution_jobs import ExecutionJobs
from provision.sandbox.notebooks_service import NotebooksService
from provision.sandbox.vertex_service import VertexService

if TYPE_CHECKING:
    from provision.sandbox.vertex_grpc_handlers import VertexMethods

_THREADS = 8
_WAITING_THREADS = 64
"""For calls that are answered late."""
_GRACE_S = 5.0
"""Seconds that calls in progress may take once the process ends; then gRPC cancels them."""


@contextmanager
def run_grpc_server(
    notebooks: NotebooksService,
    vertex: VertexService,
    jobs: ExecutionJobs,
    port: int = 0,
    *,
    delay_s: float = 0.0,
) -> Iterator[int]:
    """Serve on a loopback port (0: a free one) during the block, and yield the port.

    Calls are answered after `delay_s` seconds.

    Raises:
        RuntimeError: the port is in use.
    """
    server = grpc.server(
        ThreadPoolExecutor(
            _WAITING_THREADS if delay_s else _THREADS, thread_name_prefix="sandbox-grpc"
        ),
        options=(("grpc.so_reuseport", 0),),
    )
    server.add_generic_rpc_handlers((_Methods(notebooks, vertex, jobs, delay_s),))
    bound = server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    try:
        yield bound
    finally:
        server.stop(grace=_GRACE_S).wait()


class _Methods(grpc.GenericRpcHandler):  # type: ignore[misc]
    def __init__(
        self,
        notebooks: NotebooksService,
        vertex: VertexService,
        jobs: ExecutionJobs,
        delay_s: float,
    ) -> None:
        self._service, self._vertex_service, self._jobs = notebooks, vertex, jobs
        self._delay_s = delay_s

    def service(self, handler_call_details: Any) -> Any:
        """Return the handler of a method, or None, for which gRPC reports UNIMPLEMENTED."""
        handler = self._find_handler(handler_call_details.method)
        if handler is None or not self._delay_s:
            return handler
        answer = handler.unary_unary

        def answer_late(request: Any, context: Any) -> Any:
            time.sleep(self._delay_s)
            return answer(request, context)

        return handler._replace(unary_unary=answer_late)

    def _find_handler(self, method: str) -> Any:
        if not method.startswith("/google.cloud.aiplatform."):
            return self._notebooks_handlers.get(method)
        try:
            return self._vertex.handlers.get(method)
        except ModuleNotFoundError:  # the extra `vertex` is not installed
            return None

    @cached_property
    def _notebooks_handlers(self) -> dict[str, Any]:
        from provision.sandbox.notebooks_grpc_handlers import build_method_handlers

        return build_method_handlers(self._service, self._get_vertex_operation)

    @cached_property
    def _vertex(self) -> VertexMethods:
        from provision.sandbox.vertex_grpc_handlers import VertexMethods

        return VertexMethods(self._vertex_service, self._jobs)

    def _get_vertex_operation(self, request: Any) -> Any:
        return self._vertex.get_operation(request)
