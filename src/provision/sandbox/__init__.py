"""A look-alike of the Google Cloud services that provisioning needs, on loopback, over one store in
a folder.
"""

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
from typing import NamedTuple

from provision.errors import ExternalError, ProvisionError
from provision.sandbox.booter import Booter, NullBooter
from provision.sandbox.faults import Faults
from provision.sandbox.lifecycle import Delays, Lifecycle
from provision.sandbox.notebooks import NotebooksService
from provision.sandbox.store import Store
from provision.sanitize import escape_line

__all__ = ["Booter", "Delays", "Faults", "Sandbox", "Store", "serve"]
_ENDPOINTS = "endpoints.json"
_LOOK_S = 0.02
_PATIENCE = 5.0
"""Seconds that a sandbox at work in another process may take to say where it listens."""


class Sandbox(NamedTuple):
    """A sandbox that runs: `endpoints` by notebooks_rest, notebooks_grpc, compute, storage,
    secrets, metadata.

    The REST ones are roots ("http://127.0.0.1:PORT"), to which a client adds /v2/...,
    /compute/v1/..., /storage/v1/... or /v1/...; gRPC is HOST:PORT without
    TLS; metadata is "" here: each device has a server of its own. `store` is None where another
    process runs it, which `holder` names.
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
    """Run the services over the store in FOLDER while the block runs, or use those that another
    process runs there.

    When that process ends first, however it ends, this one runs them at the same addresses.
    `ports` are those of HTTP and gRPC (0: a free one). Devices are
    run by `booter` when `boot`; without one, instances turn ACTIVE and stay silent.

    Raises UsageError for a fault that is unknown, WorldError where the extra is missing, or
    where another process is at work there and faults are asked for.
    """
    scripted = Faults(faults)
    _require()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    (folder / ".gitignore").write_text("*\n")
    with ExitStack() as stack:
        handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        stack.callback(os.close, handle)
        runner = booter if boot and booter is not None else NullBooter()

        def run(at: tuple[int, int]) -> AbstractContextManager[Sandbox]:
            return _running(folder, handle, scripted, runner, delays or Delays(), at)

        endpoints = _elsewhere(folder, handle, faults)
        if endpoints is None:
            (folder / _ENDPOINTS).unlink(missing_ok=True)  # of a process that was killed
            yield stack.enter_context(run(ports))
            return
        stack.enter_context(_following(handle, endpoints, run))
        yield Sandbox(endpoints, None, scripted, _holder(folder))


@contextmanager
def _following(
    handle: int,
    endpoints: Mapping[str, str],
    run: Callable[[tuple[int, int]], AbstractContextManager[Sandbox]],
) -> Iterator[None]:
    """Run the services at these addresses from the end of the process that runs them now until the
    end of the block.
    """
    over = threading.Event()
    ports = _port(endpoints["notebooks_rest"]), _port(endpoints["notebooks_grpc"])

    def follow() -> None:
        while not _locked(handle):
            if over.wait(_LOOK_S):
                return
        while not over.is_set():
            try:
                with run(ports):
                    over.wait()
            except ProvisionError:  # the ports of a process that has just ended may still be taken
                over.wait(_LOOK_S)

    thread = threading.Thread(target=follow, name="sandbox-following", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _port(address: str) -> int:
    return int(address.rpartition(":")[2])


def _locked(handle: int) -> bool:
    """Lock the file of a folder's sandbox, and return whether that was possible."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


@contextmanager
def _running(
    folder: Path,
    handle: int,
    faults: Faults,
    booter: Booter,
    delays: Delays,
    ports: tuple[int, int],
) -> Iterator[Sandbox]:
    from provision import facts as known
    from provision.sandbox import (
        compute,
        grpc_server,
        http_server,
        notebooks_rest,
        secret_manager,
        storage,
    )

    os.ftruncate(handle, 0)
    os.pwrite(handle, f"process {os.getpid()}: {_command()}\n".encode(), 0)
    store, facts = Store(folder), known.load_facts()
    life = Lifecycle(store, faults, booter, delays)
    service = NotebooksService(store, facts, faults, life)
    router = http_server.Router()
    notebooks_rest.add_routes(router, service)
    compute.add_routes(router, store, facts, faults)
    storage.add_routes(router, store, faults)
    secret_manager.add_routes(router, store)
    # The devices end first: their programs would otherwise run until they notice, and stay as
    # zombies until somebody waits for them.
    with (
        _listening(http_server.run_http_server(router, ports[0])) as port,
        _listening(grpc_server.run_grpc_server(service, ports[1])) as second,
        closing(booter),
    ):
        life.endpoints = _endpoints(port, second)
        (folder / _ENDPOINTS).write_text(json.dumps(life.endpoints))
        try:
            life.boot_interrupted_devices()
            yield Sandbox(dict(life.endpoints), store, faults)
        finally:
            (folder / _ENDPOINTS).unlink(missing_ok=True)


@contextmanager
def _listening(server: AbstractContextManager[int]) -> Iterator[int]:
    with ExitStack() as stack:
        try:
            port = stack.enter_context(server)
        except (OSError, RuntimeError) as error:  # grpc raises RuntimeError
            raise ExternalError(
                "the sandbox cannot listen on that port",
                why=str(error),
                hint="leave the port out: a free one is taken",
            ) from None
        yield port


def _endpoints(port: int, second: int) -> dict[str, str]:
    root = f"http://127.0.0.1:{port}"
    return {
        "notebooks_rest": root,
        "notebooks_grpc": f"127.0.0.1:{second}",
        "compute": root,
        "storage": root,
        "secrets": root,
        "metadata": "",
    }


def _command() -> str:
    """Return the command line that runs us, as a person would write it."""
    return shlex.join([Path(sys.argv[0]).name.replace("__main__.py", "provision"), *sys.argv[1:]])[
        :300
    ]


def _holder(folder: Path) -> str:
    """Return which process runs the sandbox there, as it wrote it down itself."""
    try:
        return (
            escape_line((folder / "lock").read_text(encoding="utf-8", errors="replace").strip())
            or "a process that did not say who it is"
        )
    except OSError as error:
        return f"a process that cannot be told: {error.strerror}"


def _elsewhere(folder: Path, handle: int, faults: tuple[str, ...]) -> dict[str, str] | None:
    """Return where the sandbox of another process listens; None when there is none: its file is
    locked for this process then.
    """
    deadline = time.monotonic() + _PATIENCE
    while not _locked(handle):
        holder = _holder(folder)
        if faults:
            why = f"faults are set by the process that runs it: {holder}"
            hint = "end that process first, or give the faults to `provision sandbox up`"
            raise ExternalError(
                f"{folder}: a sandbox runs there already", why=why, hint=hint
            ) from None
        try:
            endpoints: Mapping[str, str] = json.loads((folder / _ENDPOINTS).read_text())
            return dict(endpoints)
        except (OSError, ValueError):
            if time.monotonic() > deadline:
                break
        time.sleep(_LOOK_S)
    else:
        return None
    hint = f"try again, or end it ({holder})"
    raise ExternalError(
        f"{folder}: a sandbox is at work there, and does not say where it listens",
        why=f"it is run by {holder}",
        hint=hint,
    )


def _require() -> None:
    for module in ("grpc", "google.cloud.notebooks_v2"):
        try:
            missing = find_spec(module) is None
        except ModuleNotFoundError:
            missing = True
        if missing:
            from provision.extras import install_command

            raise ExternalError(
                "the sandbox needs packages that are not installed",
                why=f"there is no module {module}",
                hint=install_command("sandbox"),
            )
