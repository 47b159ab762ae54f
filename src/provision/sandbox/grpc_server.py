"""The gRPC server; its messages are loaded at the first call, to keep REST fast."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc

from provision.sandbox.notebooks_service import NotebooksService

_THREADS = 8
_GRACE_S = 5.0
"""Seconds that calls in progress may take once the process ends; then gRPC cancels them."""


@contextmanager
def run_grpc_server(service: NotebooksService, port: int = 0) -> Iterator[int]:
    """Serve on a loopback port (0: a free one) during the block, and yield the port.

    Raises:
        RuntimeError: the port is in use.
    """
    server = grpc.server(
        ThreadPoolExecutor(_THREADS, thread_name_prefix="sandbox-grpc"),
        options=(("grpc.so_reuseport", 0),),
    )
    server.add_generic_rpc_handlers((_Methods(service),))
    bound = server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    try:
        yield bound
    finally:
        server.stop(grace=_GRACE_S).wait()


class _Methods(grpc.GenericRpcHandler):  # type: ignore[misc]
    def __init__(self, service: NotebooksService) -> None:
        self._service = service
        self._lock = threading.Lock()
        self._known: dict[str, Any] = {}

    def service(self, handler_call_details: Any) -> Any:
        """Return the handler of a method, or None, for which gRPC reports UNIMPLEMENTED."""
        with self._lock:
            if not self._known:
                from provision.sandbox.notebooks_grpc_handlers import build_method_handlers

                self._known = build_method_handlers(self._service)
        return self._known.get(handler_call_details.method)
