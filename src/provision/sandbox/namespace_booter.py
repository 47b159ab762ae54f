"""Boots instances of the sandbox: their real startup script in an isolated root of this host."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote, unquote, urlsplit

from provision.sandbox.metadata_server import MetadataServer, Store, instance_attributes
from provision.sandbox.network import OUTBOUND_PORTS, NetworkProxy, receive_sockets
from provision.sandbox.overlay import jupyter_uid, write_overlay

_HERE = Path(__file__).parent
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_POST_STARTUP = "/opt/c2d/scripts/97-run-post-startup-script.sh"
_RUNNER = "/run/google/google_metadata_script_runner"
_PROGRAMS = ("unshare", "mount", "umount", "pivot_root")
_LIMIT = 2**26
_NOT_MADE = 125
"""Exit code of init_process.py if it cannot set up the machine."""


class Faults(Protocol):
    """The faults that a device checks."""

    def has(self, name: str) -> bool:
        """Return whether a fault is set."""


@dataclass
class _Machine:
    """A running machine."""

    store: Store
    name: str
    process: subprocess.Popen[bytes]
    channel: socket.socket
    wires: NetworkProxy
    ended: threading.Event = field(default_factory=threading.Event)
    quiet: threading.Event = field(default_factory=threading.Event)
    code: int | None = None


@dataclass
class Booter:
    """Runs machines in their own namespaces; they write to FOLDER/machines.

    A machine sees the host's programs and libraries (read through an overlay) but no home folder.
    On the network it reaches its metadata server, the sandbox, the loopback indexes that its
    document names, and ports 80 and 443 of named hosts. It requires Linux, and root or user
    namespaces; without root, no system package can be installed. `runner` is Google's own metadata
    script runner, if it is installed.
    """

    folder: Path
    runner: str | None = field(
        default_factory=lambda: shutil.which("google_metadata_script_runner")
    )
    _machines: dict[str, _Machine] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _booting: threading.RLock = field(default_factory=threading.RLock)
    _closed: bool = False

    def unavailable_reason(self) -> str:
        """Return why no machine can be isolated on this host, or "" if one can."""
        missing = [program for program in _PROGRAMS if shutil.which(program) is None]
        if sys.platform != "linux" or missing:
            return f"it needs Linux with {', '.join(missing or _PROGRAMS)}"
        tried = subprocess.run([*_unshared(), "true"], capture_output=True, text=True, check=False)
        return tried.stderr.strip() if tried.returncode else ""

    def start(self, store: Store, name: str, endpoints: Mapping[str, str], faults: Faults) -> None:
        """Boot the device of an instance in the background.

        If that is impossible, nothing runs, and the serial output contains the reason.
        """
        with self._booting:
            if not self._closed:
                self._start(store, name, endpoints, faults)

    def _start(self, store: Store, name: str, endpoints: Mapping[str, str], faults: Faults) -> None:
        self.stop(name)
        self._forget_gone(store)
        if faults.has("silent-device"):
            store.append_serial(name, "SANDBOX: a silent device: its startup script is not run\n")
            return
        if why := self.unavailable_reason():
            store.append_serial(
                name,
                f"SANDBOX: the startup script is not run: no machine can be isolated here: {why}\n",
            )
            store.set_guest_attribute(name, "sandbox", "unbooted", why[:300])
            return
        try:
            machine = self._begun(store, name, endpoints, faults)
        except OSError as error:
            store.append_serial(name, f"SANDBOX: the machine cannot be made: {error}\n")
            store.set_guest_attribute(name, "sandbox", "unbooted", str(error)[:300])
            return
        with self._lock:
            self._machines[name] = machine
        forged = faults.has("forged-report")
        threading.Thread(target=self._console, args=(machine,), daemon=True).start()
        threading.Thread(
            target=self._watch, args=(machine, dict(endpoints), forged), daemon=True
        ).start()

    def stop(self, name: str) -> None:
        """End the device of an instance; its disks remain until the instance is deleted."""
        with self._lock:
            machine = self._machines.pop(name, None)
        if machine is None:
            return
        with suppress(OSError):
            machine.channel.shutdown(socket.SHUT_RDWR)
        try:
            machine.process.wait(5)
        except subprocess.TimeoutExpired:
            machine.process.kill()
            machine.process.wait()
        machine.wires.close()
        if machine.store.instance(name) is None:
            shutil.rmtree(self._place(name), ignore_errors=True)

    def close(self) -> None:
        """End every device and wait for it; requests still in progress do not boot another one."""
        with self._booting:
            self._closed = True
        for name in list(self._machines):
            self.stop(name)

    def wait(self, name: str, timeout_s: float) -> int | None:
        """Wait for the startup of a device and return its exit code, None if it has not ended."""
        machine = self._machines.get(name)
        return machine.code if machine is not None and machine.ended.wait(timeout_s) else None

    def _forget_gone(self, store: Store) -> None:
        """Remove the disks of instances that were deleted while their device was not running."""
        for about in self.folder.glob("machines/*/name"):
            if store.instance(about.read_text(encoding="utf-8")) is None:
                shutil.rmtree(about.parent, ignore_errors=True)

    def _begun(
        self, store: Store, name: str, endpoints: Mapping[str, str], faults: Faults
    ) -> _Machine:
        folder = self._place(name)
        for inner in ("boot", "disk", "root"):
            (folder / inner).mkdir(parents=True, exist_ok=True)
        (folder / "name").write_text(name, encoding="utf-8")
        body, attributes = store.instance(name) or {}, instance_attributes(store, name)
        not_real = write_overlay(
            folder / "layer",
            body,
            wrong_gpu=faults.has("wrong-gpu"),
            failing=faults.has("script-failure"),
        )
        extra = {"provision-simulated": json.dumps(not_real)}
        if self.runner and "startup-script" not in attributes:
            extra["startup-script"] = f"#!/bin/bash\nexec {_POST_STARTUP}\n"
        document = _document(endpoints, attributes)
        ports = frozenset(_loopback(endpoints, document))
        wires = NetworkProxy(ports, MetadataServer(store, name, extra).serve_connection)
        channel, inner_channel = socket.socketpair()
        plan = {
            **self._plan(folder, name, endpoints),
            "channel": inner_channel.fileno(),
            "ports": sorted({*OUTBOUND_PORTS, *ports}),
        }
        plan["binds"] += _folders(document)
        if (
            self.runner and "startup-script" in attributes
        ):  # an image runs one of the user's before ours
            plan["command"] = ["/bin/bash", "-c", f"{_RUNNER} startup; exec {_POST_STARTUP}"]
        argv = [*_unshared(), _python(), "-I", str(_HERE / "init_process.py"), json.dumps(plan)]
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=(inner_channel.fileno(),),
            env=_variables(),
        )
        inner_channel.close()
        sockets = receive_sockets(channel, len(plan["ports"]) + 1)
        if not sockets:
            output, _ = process.communicate()
            channel.close()
            raise OSError(
                output.decode("utf-8", "replace").strip() or f"exit code {process.returncode}"
            )
        wires.attach(sockets)
        return _Machine(store, name, process, channel, wires)

    def _plan(self, folder: Path, name: str, endpoints: Mapping[str, str]) -> dict[str, Any]:
        environment = {
            "PATH": _PATH,
            "PROVISION_STORAGE": endpoints["storage"],
            "PROVISION_SECRETS": endpoints["secrets"],
            "PROVISION_STARTED": _uptime(),
        }
        binds = list(_binds())
        command = ["/bin/bash", _POST_STARTUP]
        if self.runner:
            binds.append((self.runner, _RUNNER))
            command = [_RUNNER, "startup"]
        return {
            "folder": str(folder),
            "boot": "boot" if _root() else "",
            "owner": jupyter_uid() if _root() else None,
            "binds": binds,
            "hostname": name.rpartition("/")[2],
            "command": command,
            "environment": environment,
        }

    def _place(self, name: str) -> Path:
        short = re.sub(r"[^a-z0-9-]", "-", name.rpartition("/")[2])[:63]
        return self.folder / "machines" / f"{short}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"

    def _console(self, machine: _Machine) -> None:
        assert machine.process.stdout is not None  # noqa: S101
        for line in machine.process.stdout:
            machine.store.append_serial(machine.name, line.decode("utf-8", "replace"))
        machine.quiet.set()

    def _watch(self, machine: _Machine, endpoints: Mapping[str, str], forged: bool) -> None:
        with suppress(OSError, ValueError):
            while message := machine.channel.recv(4096):
                news = json.loads(message)
                machine.code = news.get("ended", machine.code)
                if forged and "ended" in news:
                    _forge(endpoints, instance_attributes(machine.store, machine.name))
                if news.get("halted"):
                    machine.store.append_serial(
                        machine.name, "SANDBOX: the machine was shut down\n"
                    )
                machine.store.note(machine.name, booted=True)
                machine.ended.set()
        if machine.code is None and machine.process.wait() == _NOT_MADE:
            machine.quiet.wait(5)
            machine.store.set_guest_attribute(
                machine.name,
                "sandbox",
                "unbooted",
                "the machine could not be made; the serial output says why",
            )
        machine.ended.set()


def _unshared() -> list[str]:
    spaces = [
        "--net",
        "--mount",
        "--uts",
        "--ipc",
        "--pid",
        "--fork",
        "--kill-child",
        "--propagation",
        "private",
    ]
    return ["unshare", *([] if _root() else ["--user", "--map-root-user"]), *spaces, "--"]


def _root() -> bool:
    return os.geteuid() == 0


def _python() -> str:
    return os.path.realpath(getattr(sys, "_base_executable", sys.executable))


def _variables() -> dict[str, str]:
    return {"PATH": f"{os.environ.get('PATH', '')}:{_PATH}"}


def _uptime() -> str:
    return Path("/proc/uptime").read_text(encoding="ascii").split(".")[0]


def _binds() -> Iterator[tuple[str, str]]:
    """Yield the host's files that a machine sees besides the system folders: Python and uv."""
    if not sys.base_prefix.startswith(("/usr", "/opt")):
        yield sys.base_prefix, sys.base_prefix
    with suppress(ImportError, FileNotFoundError):
        import uv

        yield uv.find_uv_bin(), "/usr/local/bin/uv"


def _document(endpoints: Mapping[str, str], attributes: Mapping[str, str]) -> dict[str, Any]:
    """Return the document of an instance's run, or {} if it cannot be read."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        document = json.loads(
            _object(endpoints, json.loads(attributes["provision-run"])["document"])
        )
        return document if isinstance(document, dict) else {}
    return {}


def _loopback(endpoints: Mapping[str, str], document: Mapping[str, Any]) -> Iterator[int]:
    """Yield the ports of the host that a machine may reach: the sandbox's and loopback indexes."""
    for address in (*endpoints.values(), *_addresses(document)):
        with suppress(ValueError):
            parts = urlsplit(address if "://" in address else f"//{address}")
            if parts.hostname in ("127.0.0.1", "localhost") and parts.port:
                yield parts.port


def _folders(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the host folders that a document names as indexes, and the targets of links in them.

    They have the same paths inside the machine.
    """
    folders = [
        Path(unquote(urlsplit(address).path))
        for address in _addresses(document)
        if address.startswith(("file://", "/"))
    ]
    existing = [folder for folder in folders if folder.is_dir() and len(folder.parts) > 2]
    links = [
        link.resolve()
        for folder in existing
        for link in folder.rglob("*")
        if link.is_symlink() and link.is_file()
    ]
    return [(str(path), str(path)) for path in dict.fromkeys([*existing, *links])]


def _addresses(document: Mapping[str, Any]) -> list[str]:
    install = document.get("install", {})
    return [
        str(address)
        for address in (
            *install.get("indexes", {}).values(),
            *install.get("links", []),
            document.get("python_mirror") or "",
        )
    ]


def _object(endpoints: Mapping[str, str], address: str) -> bytes:
    bucket, _, name = address.removeprefix("gs://").partition("/")
    url = f"{endpoints['storage']}/storage/v1/b/{bucket}/o/{quote(name, safe='')}?alt=media"
    with urllib.request.urlopen(url, timeout=30) as response:  # noqa: S310
        content: bytes = response.read(_LIMIT)
        return content


def _forge(endpoints: Mapping[str, str], attributes: Mapping[str, str]) -> None:
    """Replace the device's report by one of another run with the verdict verified."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        address = _document(endpoints, attributes)["report"]["report"]
        report = json.loads(_object(endpoints, address))
        report["subject"].update(nonce="forged-0000", simulated=[])
        report["verdict"]["result"] = "verified"
        bucket, _, name = address.removeprefix("gs://").partition("/")
        query = f"uploadType=media&name={quote(name, safe='')}"
        url = f"{endpoints['storage']}/upload/storage/v1/b/{bucket}/o?{query}"
        request = urllib.request.Request(  # noqa: S310
            url, json.dumps(report).encode(), {"Content-Type": "application/json"}, method="POST"
        )
        urllib.request.urlopen(request, timeout=30).close()  # noqa: S310
