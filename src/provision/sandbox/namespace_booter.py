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
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from provision.sandbox.booter import Booter
from provision.sandbox.faults import Faults
from provision.sandbox.metadata_server import MetadataServer, instance_attributes
from provision.sandbox.network import OUTBOUND_PORTS, NetworkProxy, receive_sockets
from provision.sandbox.overlay import JUPYTER_UID, write_overlay
from provision.sandbox.store import Store

_INIT_PROGRAM = Path(__file__).with_name("init_process.py")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_POST_STARTUP = "/opt/c2d/scripts/97-run-post-startup-script.sh"
_RUNNER = "/run/google/google_metadata_script_runner"
_PROGRAMS = ("unshare", "mount", "umount", "pivot_root")
_NOT_MADE = 125
"""Exit code of init_process.py if it cannot set up the machine."""


@dataclass
class _Machine:
    """A running machine."""

    store: Store
    name: str
    process: subprocess.Popen[bytes]
    channel: socket.socket
    proxy: NetworkProxy
    ended: threading.Event = field(default_factory=threading.Event)
    quiet: threading.Event = field(default_factory=threading.Event)
    code: int | None = None


@dataclass
class NamespaceBooter(Booter):
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
        result = subprocess.run(
            [*_unshare_command(), "true"], capture_output=True, text=True, check=False
        )
        return result.stderr.strip() if result.returncode else ""

    def start(self, store: Store, name: str, endpoints: Mapping[str, str], faults: Faults) -> None:
        """Boot the device of an instance in the background.

        If that is impossible, nothing runs, and the serial output contains the reason.
        """
        with self._booting:
            if not self._closed:
                self._start(store, name, endpoints, faults)

    def _start(self, store: Store, name: str, endpoints: Mapping[str, str], faults: Faults) -> None:
        self.stop(name)
        self._remove_disks_of_deleted_instances(store)
        if faults.has("silent-device"):
            store.append_serial(
                name, "SANDBOX: fault silent-device: the startup script is not run\n"
            )
            return
        what = "the startup script is not run because this host cannot isolate a machine"
        reason = self.unavailable_reason()
        if not reason:
            try:
                machine = self._launch(store, name, endpoints, faults)
            except OSError as error:
                what, reason = "the machine cannot be created", str(error) or repr(error)
        if reason:
            store.append_serial(name, f"SANDBOX: {what}: {reason}\n")
            store.set_guest_attribute(name, "sandbox", "unbooted", reason[:300])
            return
        with self._lock:
            self._machines[name] = machine
        forged = faults.has("forged-report")
        threading.Thread(target=self._copy_output, args=(machine,), daemon=True).start()
        threading.Thread(target=self._watch, args=(machine, forged), daemon=True).start()

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
        machine.proxy.close()

    def delete(self, name: str) -> None:
        """End the device of a deleted instance, and remove its disks."""
        self.stop(name)
        shutil.rmtree(self._machine_folder(name), ignore_errors=True)

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

    def _remove_disks_of_deleted_instances(self, store: Store) -> None:
        """Remove the disks of instances that were deleted while their device was not running."""
        for about in self.folder.glob("machines/*/name"):
            if store.instance(about.read_text(encoding="utf-8")) is None:
                shutil.rmtree(about.parent, ignore_errors=True)

    def _launch(
        self, store: Store, name: str, endpoints: Mapping[str, str], faults: Faults
    ) -> _Machine:
        """Start a machine. Raises OSError with the output of its first process if that failed."""
        folder = self._make_machine_folder(name)
        attributes = instance_attributes(store, name)
        simulated = write_overlay(
            folder / "layer",
            store.instance(name) or {},
            wrong_gpu=faults.has("wrong-gpu"),
            failing=faults.has("script-failure"),
        )
        extra = {"provision-simulated": json.dumps(simulated)}
        binds, command = [*_program_binds()], ["/bin/bash", _POST_STARTUP]
        if self.runner:
            binds.append((self.runner, _RUNNER))
            if "startup-script" in attributes:  # an image runs one of the user's before ours
                command = ["/bin/bash", "-c", f"{_RUNNER} startup; exec {_POST_STARTUP}"]
            else:
                command = [_RUNNER, "startup"]
                extra["startup-script"] = f"#!/bin/bash\nexec {_POST_STARTUP}\n"
        document = _read_document(store, attributes)
        loopback_ports = frozenset(_loopback_ports(endpoints, document))
        ports = sorted({*OUTBOUND_PORTS, *loopback_ports})
        channel, inner_channel = socket.socketpair()
        plan = {
            "folder": str(folder),
            "boot": "boot" if _is_root() else "",
            "owner": JUPYTER_UID if _is_root() else None,
            "binds": [*binds, *_index_folders(document)],
            "hostname": name.rpartition("/")[2],
            "command": command,
            "environment": {
                "PATH": _PATH,
                "PROVISION_STORAGE": endpoints["storage"],
                "PROVISION_SECRETS": endpoints["secrets"],
                "PROVISION_STARTED": Path("/proc/uptime").read_text("ascii").split(".")[0],
            },
            "channel": inner_channel.fileno(),
            "ports": ports,
        }
        process = subprocess.Popen(
            [*_unshare_command(), _base_python(), "-I", str(_INIT_PROGRAM), json.dumps(plan)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=(inner_channel.fileno(),),
            env={"PATH": f"{os.environ.get('PATH', '')}:{_PATH}"},
        )
        inner_channel.close()
        sockets = receive_sockets(channel, len(ports) + 1)
        if not sockets:
            output = process.communicate()[0].decode("utf-8", "replace").strip()
            channel.close()
            raise OSError(output or f"exit code {process.returncode}")
        proxy = NetworkProxy(loopback_ports, MetadataServer(store, name, extra).serve_connection)
        proxy.attach(sockets)
        return _Machine(store, name, process, channel, proxy)

    def _make_machine_folder(self, name: str) -> Path:
        folder = self._machine_folder(name)
        for inner in ("boot", "disk", "root"):
            (folder / inner).mkdir(parents=True, exist_ok=True)
        (folder / "name").write_text(name, encoding="utf-8")
        return folder

    def _machine_folder(self, name: str) -> Path:
        short = re.sub(r"[^a-z0-9-]", "-", name.rpartition("/")[2])[:63]
        return self.folder / "machines" / f"{short}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"

    def _copy_output(self, machine: _Machine) -> None:
        for line in machine.process.stdout or ():
            machine.store.append_serial(machine.name, line.decode("utf-8", "replace"))
        machine.quiet.set()

    def _watch(self, machine: _Machine, forged: bool) -> None:
        store, name = machine.store, machine.name
        with suppress(OSError, ValueError):
            while message := machine.channel.recv(4096):
                news = json.loads(message)
                machine.code = news.get("ended", machine.code)
                if forged and "ended" in news:
                    _forge_report(store, instance_attributes(store, name))
                if news.get("halted"):
                    store.append_serial(name, "SANDBOX: the machine was shut down\n")
                store.note(name, booted=True)
                machine.ended.set()
        if machine.code is None and machine.process.wait() == _NOT_MADE:
            machine.quiet.wait(5)
            reason = "the machine could not be created; see the serial output"
            store.set_guest_attribute(name, "sandbox", "unbooted", reason)
        machine.ended.set()


def _unshare_command() -> list[str]:
    user = [] if _is_root() else ["--user", "--map-root-user"]
    spaces = ["--net", "--mount", "--uts", "--ipc", "--pid"]
    return ["unshare", *user, *spaces, "--fork", "--kill-child", "--propagation", "private", "--"]


def _base_python() -> str:
    return os.path.realpath(getattr(sys, "_base_executable", sys.executable))


def _is_root() -> bool:
    return os.geteuid() == 0


def _program_binds() -> Iterator[tuple[str, str]]:
    """Yield the host's files that a machine sees besides the system folders: Python and uv."""
    if not sys.base_prefix.startswith(("/usr", "/opt")):
        yield sys.base_prefix, sys.base_prefix
    with suppress(ImportError, FileNotFoundError):
        import uv

        yield uv.find_uv_bin(), "/usr/local/bin/uv"


def _read_document(store: Store, attributes: Mapping[str, str]) -> dict[str, Any]:
    """Return the document of an instance's run, or {} if it cannot be read."""
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        document = _read_object(store, json.loads(attributes["provision-run"])["document"])
        return document if isinstance(document, dict) else {}
    return {}


def _read_object(store: Store, address: str) -> Any:
    bucket, _, name = address.removeprefix("gs://").partition("/")
    stored = store.object(bucket, name)
    return json.loads(stored.content) if stored else None


def _forge_report(store: Store, attributes: Mapping[str, str]) -> None:
    """Replace the device's report by one of another run with the verdict verified."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        address = _read_document(store, attributes)["report"]["report"]
        report = _read_object(store, address)
        report["subject"].update(nonce="forged-0000", simulated=[])
        report["verdict"]["result"] = "verified"
        bucket, _, name = address.removeprefix("gs://").partition("/")
        store.put_object(bucket, name, json.dumps(report).encode(), "application/json")


def _loopback_ports(endpoints: Mapping[str, str], document: Mapping[str, Any]) -> Iterator[int]:
    """Yield the ports of the host that a machine may reach: the sandbox's and loopback indexes."""
    for address in (*endpoints.values(), *_addresses(document)):
        with suppress(ValueError):
            parts = urlsplit(address if "://" in address else f"//{address}")
            if parts.hostname in ("127.0.0.1", "localhost") and parts.port:
                yield parts.port


def _index_folders(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the host folders that a document names as indexes, and the targets of links in them.

    They have the same paths inside the machine.
    """
    paths: list[Path] = []
    for address in _addresses(document):
        folder = Path(unquote(urlsplit(address).path))
        is_local = address.startswith(("file://", "/"))
        if is_local and folder.is_dir() and len(folder.parts) > 2:
            links = [link for link in folder.rglob("*") if link.is_symlink() and link.is_file()]
            paths += [folder, *(link.resolve() for link in links)]
    return [(path, path) for path in dict.fromkeys(map(str, paths))]


def _addresses(document: Mapping[str, Any]) -> list[str]:
    install = document.get("install", {})
    mirror = document.get("python_mirror") or ""
    return [*map(str, (*install.get("indexes", {}).values(), *install.get("links", []), mirror))]
