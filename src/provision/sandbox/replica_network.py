"""Gives each replica of a job a host: a network namespace that a bridge connects to the others.

A replica has a host name that the others cannot resolve. The names in CLUSTER_SPEC lead to service
addresses, which forward only the ports of the service. Between their own addresses all ports are
open.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from provision.sandbox.network import OUTBOUND_PORTS, NetworkProxy

SERVICE_PORTS = (2222, 3333, 6000)
"""Ports that the names in CLUSTER_SPEC forward: those of the CMLE_TRAINING variables."""
_PROGRAMS = {"ip": "iproute2", "tc": "iproute2", "unshare": "util-linux", "nsenter": "util-linux"}
_HUB = Path(__file__).with_name("replica_hosts.py")
_ENTER = """import os, sys
os.closerange(3, 1024)
os.chdir(sys.argv[1])
os.execvp(sys.argv[2], sys.argv[2:])
"""
_NAMESPACES = ("net", "uts", "mount")
_PORT = re.compile(r"://[^/\s\"']*?:([0-9]{1,5})\b|\b(?:127\.0\.0\.1|localhost):([0-9]{1,5})\b")
_END_S = 5.0


class ReplicaHost(NamedTuple):
    """The host of a replica: its name in CLUSTER_SPEC, and the open files of its namespaces."""

    number: int
    service_name: str
    namespaces: tuple[int, ...]
    proxy: NetworkProxy


class ReplicaNetwork:
    """The hosts of one job. They disappear with this object, and with this process."""

    def __init__(
        self,
        folder: Path,
        tasks: Sequence[str],
        key: str,
        ports: frozenset[int],
        slow: frozenset[str],
    ) -> None:
        """Create a host for each task, such as workerpool1-0.

        Args:
            folder: an empty folder for the files of the hosts.
            tasks: the replicas in the order of their ranks.
            key: a part of all names, which differs from job to job.
            ports: ports of this machine, and of other named hosts, that replicas use.
            slow: tasks with a slow link.

        Raises:
            OSError: this machine cannot isolate hosts.
        """
        for program, package in _PROGRAMS.items():
            if sys.platform != "linux" or shutil.which(program) is None:
                raise OSError(f"{program} is missing; install {package}")
        self.hosts: dict[str, ReplicaHost] = {}
        self._namespaces: tuple[int, ...] = ()
        self._channel, inner = socket.socketpair()
        channels = {task: socket.socketpair() for task in tasks}
        listening = sorted({*OUTBOUND_PORTS, *ports} - set(SERVICE_PORTS))
        plans = [
            {
                **_plan_host(folder, number, tasks, key),
                "channel": channels[task][1].fileno(),
                "slow": task in slow,
                "ports": listening,
            }
            for number, task in enumerate(tasks)
        ]
        inherited = [inner.fileno(), *(channel.fileno() for _, channel in channels.values())]
        plan = {"channel": inner.fileno(), "hosts": plans, "ports": SERVICE_PORTS}
        python = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
        self._hub = subprocess.Popen(
            [*_unshare_command(), python, "-I", str(_HUB), "hub", json.dumps(plan)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=inherited,
            start_new_session=True,
        )
        for channel in (inner, *(channel for _, channel in channels.values())):
            channel.close()
        try:
            for number, (task, (channel, _)) in enumerate(channels.items()):
                self._add_host(number, task, key, channel, frozenset(listening))
            if not self._channel.recv(16):
                raise OSError
            self._namespaces = _open_namespaces(self._hub.pid)
        except OSError:
            self.close()
            raise OSError(_read_reason(self._hub)) from None

    def get_command(self, task: str, folder: Path) -> tuple[list[str], tuple[int, ...]]:
        """Return what a command of a replica starts with, and the files that it has to inherit."""
        handles = self.hosts[task].namespaces
        words = ["nsenter", "--preserve-credentials"]
        kinds = ("pid", "user")[: len(self._namespaces)]
        for kind, handle in zip((*kinds, *_NAMESPACES), (*self._namespaces, *handles), strict=True):
            words.append(f"--{kind}=/proc/self/fd/{handle}")
        words += ["--", sys.executable, "-I", "-S", "-c", _ENTER, str(folder)]
        return words, (*self._namespaces, *handles)

    def silence(self, task: str) -> None:
        """Cut a host off: nothing reaches it, and nothing of it reaches anyone."""
        host = self.hosts[task]
        host.proxy.close()
        self._channel.send(str(host.number).encode())

    def close(self) -> None:
        """End all processes of the hosts, and remove their network."""
        self._channel.close()
        try:
            self._hub.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._hub.kill()
            self._hub.wait()
        for host in self.hosts.values():
            host.proxy.close()
            for handle in host.namespaces:
                os.close(handle)
        for handle in self._namespaces:
            os.close(handle)
        self.hosts, self._namespaces = {}, ()

    def _add_host(
        self, number: int, task: str, key: str, channel: socket.socket, ports: frozenset[int]
    ) -> None:
        with channel:
            _, handles, _, _ = socket.recv_fds(channel, 16, len(_NAMESPACES) + len(ports) + 1)
        if not handles:
            raise OSError
        proxy = NetworkProxy(ports, _refuse, ports)
        proxy.attach([socket.socket(fileno=handle) for handle in handles[len(_NAMESPACES) :]])
        namespaces = tuple(handles[: len(_NAMESPACES)])
        self.hosts[task] = ReplicaHost(number, _get_service_name(task, key), namespaces, proxy)


def find_ports(text: str) -> frozenset[int]:
    """Return the ports in the addresses of a text that are not those of the scheme."""
    found = (first or second for first, second in _PORT.findall(text))
    return frozenset(int(port) for port in found if 0 < int(port) < 2**16)


def _plan_host(folder: Path, number: int, tasks: Sequence[str], key: str) -> Mapping[str, object]:
    """Write the files of a host, and return the part of its plan that differs from the others."""
    hostname, address = f"gke-cml-{key}-{number}", f"10.4.{_place(number)}"
    lines = ["127.0.0.1 localhost", f"{address} {hostname}"]
    for other, task in enumerate(tasks):
        lines.append(f"10.12.{_place(other)} {_get_service_name(task, key)}")
    contents = {
        "hosts": "\n".join(lines) + "\n",
        "resolv.conf": "nameserver 127.0.0.1\n",
        "nsswitch.conf": "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n",
    }
    own = folder / tasks[number] / "etc"
    own.mkdir(parents=True)
    for name, text in contents.items():
        (own / name).write_text(text, encoding="utf-8")
    return {
        "hostname": hostname,
        "address": address,
        "service": f"10.12.{_place(number)}",
        "files": {str(own / name): f"/etc/{name}" for name in contents},
    }


def _place(number: int) -> str:
    return f"0.{number + 11}"  # a job has 64 machines at most


def _get_service_name(task: str, key: str) -> str:
    pool, _, index = task.rpartition("-")
    return f"cmle-training-{pool}-{key}-{index}"


def _unshare_command() -> list[str]:
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    spaces = ["--net", "--mount", "--uts", "--pid", "--mount-proc", "--propagation", "private"]
    return ["unshare", *user, *spaces, "--fork", "--kill-child", "--"]


def _open_namespaces(pid: int) -> tuple[int, ...]:
    """Open the process namespace of the hub and, without root, its user namespace."""
    names = ["pid_for_children"] if os.geteuid() == 0 else ["pid_for_children", "user"]
    return tuple(os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY) for name in names)


def _read_reason(hub: subprocess.Popen[bytes]) -> str:
    lines = (hub.stderr.read() if hub.stderr else b"").decode("utf-8", "replace").splitlines()
    return lines[0].strip() if lines else f"the network ended with exit code {hub.returncode}"


def _refuse(connection: socket.socket) -> None:
    """Close a connection to the address of a metadata server: jobs reach theirs by a variable."""
    with suppress(OSError):
        connection.close()
