"""Runs the emulated services over a store in a folder, one process for each folder."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from provision.errors import ExternalError, ProvisionError
from provision.sandbox.booter import Booter
from provision.sandbox.faults import Faults
from provision.sandbox.lifecycle import Delays, Lifecycle
from provision.sandbox.store import Store
from provision.sanitize import escape_line

if TYPE_CHECKING:
    from provision.facts import Facts
    from provision.sandbox.http_server import Route

_ENDPOINTS = "endpoints.json"
_POLL_S = 0.02
_ENDPOINTS_TIMEOUT_S = 5.0
"""Seconds that a sandbox of another process may take to write its endpoints."""


class Sandbox(NamedTuple):
    """A running sandbox.

    The keys of `endpoints` are notebooks_rest, notebooks_grpc, compute, storage, secrets,
    serviceusage, registry, aiplatform, aiplatform_grpc and metadata. The REST ones are roots
    ("http://127.0.0.1:PORT"), to which a client adds /v2/..., /compute/v1/..., /storage/v1/...,
    /v1beta1/... or /v1/...; gRPC is HOST:PORT without TLS; metadata is "" because each device has
    its own server. `store` is None if another process runs the services, which `holder` names.
    """

    endpoints: dict[str, str]
    store: Store | None
    faults: Faults
    holder: str = ""


@contextmanager
def serve(
    folder: Path,
    faults: tuple[str, ...] = (),
    *,
    boot: bool = True,
    booter: Booter | None = None,
    delays: Delays | None = None,
    ports: tuple[int, int] = (0, 0),
) -> Iterator[Sandbox]:
    """Run the services over the store in a folder, or use those of another process there.

    If that process ends before the block, in whatever way, this one runs the services at the same
    addresses. `ports` are those of HTTP and gRPC (0: a free one). `booter` runs the devices if
    `boot` is true; without one, instances become ACTIVE and produce no output.

    Raises:
        UsageError: a fault is unknown.
        ExternalError: the extra is missing, or faults are requested while another process runs the
            services.
    """
    scripted = Faults(faults)
    _require_packages()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    (folder / ".gitignore").write_text("*\n")
    with ExitStack() as stack:
        handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        stack.callback(os.close, handle)
        runner = booter if boot and booter is not None else Booter()

        def run(ports: tuple[int, int]) -> AbstractContextManager[Sandbox]:
            return _run_services(folder, handle, scripted, runner, delays or Delays(), ports)

        endpoints = _running_endpoints(folder, handle, faults)
        if endpoints is None:
            # A process that was killed may have left its file.
            (folder / _ENDPOINTS).unlink(missing_ok=True)
            yield stack.enter_context(run(ports))
            return
        stack.enter_context(_take_over(handle, endpoints, run))
        yield Sandbox(endpoints, None, scripted, _holder(folder))


@contextmanager
def _take_over(
    handle: int,
    endpoints: Mapping[str, str],
    run: Callable[[tuple[int, int]], AbstractContextManager[Sandbox]],
) -> Iterator[None]:
    """Run the services at the same addresses when the process that runs them ends."""
    ended = threading.Event()
    ports = _port(endpoints["notebooks_rest"]), _port(endpoints["notebooks_grpc"])

    def follow() -> None:
        while not _lock(handle):
            if ended.wait(_POLL_S):
                return
        while not ended.is_set():
            try:
                with run(ports):
                    ended.wait()
            except ProvisionError:  # the ports of a process that has just ended may still be in use
                ended.wait(_POLL_S)

    thread = threading.Thread(target=follow, name="sandbox-following", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _port(address: str) -> int:
    return int(address.rpartition(":")[2])


def _lock(handle: int) -> bool:
    """Lock the file of a sandbox, and return whether that was possible."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


@contextmanager
def _run_services(
    folder: Path,
    handle: int,
    faults: Faults,
    booter: Booter,
    delays: Delays,
    ports: tuple[int, int],
) -> Iterator[Sandbox]:
    from provision.facts import load_facts
    from provision.sandbox.custom_jobs import CustomJobs
    from provision.sandbox.execution_jobs import ExecutionJobs
    from provision.sandbox.grpc_server import run_grpc_server
    from provision.sandbox.http_server import Router, run_http_server
    from provision.sandbox.notebook_execution import NotebookMachines
    from provision.sandbox.notebooks_rest_routes import notebooks_routes
    from provision.sandbox.notebooks_service import NotebooksService
    from provision.sandbox.replica_machines import ReplicaMachines
    from provision.sandbox.vertex_rest_routes import vertex_routes
    from provision.sandbox.vertex_service import VertexService

    os.ftruncate(handle, 0)
    os.pwrite(handle, f"process {os.getpid()}: {_command()}\n".encode(), 0)
    store, facts = Store(folder), load_facts()
    lifecycle = Lifecycle(store, faults, booter, delays)
    service = NotebooksService(store, facts, faults, lifecycle)
    machines = NotebookMachines(folder)
    jobs = ExecutionJobs(store, facts, faults, lifecycle, machines)
    replicas = ReplicaMachines(folder, delays.grace)
    custom_jobs = CustomJobs(store, facts, faults, lifecycle, replicas)
    vertex = VertexService(store, facts, faults, lifecycle.delays)
    routes = [*notebooks_routes(service), *vertex_routes(vertex, jobs, custom_jobs)]
    router = Router([*routes, *_other_routes(store, facts, faults)], delay_s=delays.answer)
    # The devices end first: their programs would otherwise continue until they notice, and remain
    # zombies until a process waits for them.
    with (
        _listening(run_http_server(router, ports[0])) as http_port,
        _listening(
            run_grpc_server(service, vertex, jobs, ports[1], delay_s=delays.answer)
        ) as grpc_port,
        closing(booter),
        closing(machines),
        closing(replicas),
    ):
        lifecycle.endpoints = _endpoints(http_port, grpc_port)
        (folder / _ENDPOINTS).write_text(json.dumps(lifecycle.endpoints))
        try:
            lifecycle.boot_interrupted_devices()
            jobs.run_interrupted_jobs()
            custom_jobs.end_interrupted_jobs()
            yield Sandbox(dict(lifecycle.endpoints), store, faults)
        finally:
            (folder / _ENDPOINTS).unlink(missing_ok=True)


def _other_routes(store: Store, facts: Facts, faults: Faults) -> list[Route]:
    """Return the routes of Compute Engine, Storage, Secret Manager, Service Usage and images."""
    from provision.sandbox.compute import compute_routes
    from provision.sandbox.image_registry import image_registry_routes
    from provision.sandbox.secret_manager import secret_manager_routes
    from provision.sandbox.service_usage import service_usage_routes
    from provision.sandbox.storage import storage_routes

    return [
        *compute_routes(store, facts, faults),
        *storage_routes(store, faults),
        *secret_manager_routes(store),
        *service_usage_routes(facts, faults),
        *image_registry_routes(faults),
    ]


def _endpoints(http_port: int, grpc_port: int) -> dict[str, str]:
    rest = ("notebooks_rest", "compute", "storage", "secrets", "serviceusage", "registry")
    return {
        **dict.fromkeys((*rest, "aiplatform"), f"http://127.0.0.1:{http_port}"),
        **dict.fromkeys(("notebooks_grpc", "aiplatform_grpc"), f"127.0.0.1:{grpc_port}"),
        "metadata": "",
    }


@contextmanager
def _listening(server: AbstractContextManager[int]) -> Iterator[int]:
    with ExitStack() as stack:
        try:
            port = stack.enter_context(server)
        except (OSError, RuntimeError) as error:  # grpc raises RuntimeError
            raise ExternalError(
                "the sandbox cannot listen on the requested port",
                why=str(error),
                hint="omit the port option to use a free port",
            ) from None
        yield port


def _command() -> str:
    """Return the command line of this process as a person would write it."""
    program = Path(sys.argv[0]).name.replace("__main__.py", "provision")
    return shlex.join([program, *sys.argv[1:]])[:300]


def _holder(folder: Path) -> str:
    """Return the process that runs the sandbox of a folder, from the description it wrote."""
    try:
        text = (folder / "lock").read_text(encoding="utf-8", errors="replace")
        return escape_line(text.strip()) or "an unknown process"
    except OSError as error:
        return f"an unknown process: {error.strerror}"


def _running_endpoints(folder: Path, handle: int, faults: tuple[str, ...]) -> dict[str, str] | None:
    """Return the endpoints of another process's sandbox, or None.

    If it is None, the file of the sandbox is locked for this process.
    """
    deadline = time.monotonic() + _ENDPOINTS_TIMEOUT_S
    while not _lock(handle):
        holder = _holder(folder)
        if faults:
            raise ExternalError(
                f"{folder}: another process is already running a sandbox in this folder",
                why=f"only that process ({holder}) can set faults",
                hint="stop that process first, or pass the faults to `provision sandbox up`",
            )
        try:
            endpoints: dict[str, str] = json.loads((folder / _ENDPOINTS).read_text())
            return endpoints
        except (OSError, ValueError):
            if time.monotonic() > deadline:
                break
        time.sleep(_POLL_S)
    else:
        return None
    raise ExternalError(
        f"{folder}: another process is running a sandbox in this folder, but the sandbox is not "
        "reachable yet",
        why=f"the sandbox is in use by {holder}",
        hint="wait a moment and try again, or stop that process",
    )


def _require_packages() -> None:
    for module in ("grpc", "google.cloud.notebooks_v2"):
        try:
            missing = find_spec(module) is None
        except ModuleNotFoundError:
            missing = True
        if missing:
            from provision.extras import install_command

            raise ExternalError(
                "the sandbox needs packages that are not installed",
                why=f"the module {module} is missing",
                hint=install_command("sandbox"),
            )
