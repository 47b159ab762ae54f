"""The network of a job's replicas: a bridge, and a host with its own namespaces for each of them.

The standard library is enough to run it. replica_network.py starts it with `hub` in new namespaces,
with its plan as JSON; it starts itself with `host` for each replica. It ends when its channel to
the sandbox closes. As the first process of its process namespace, it ends all replicas with it, and
the kernel removes links, addresses and mounts.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

BRIDGE = "10.4.0.1"
_SLOW_LINK = ("tbf", "rate", "100mbit", "burst", "128kb", "latency", "50ms")
"""12.5 MB/s. netem would do too, but not every kernel has it."""
_NAMESPACES = ("net", "uts", "mnt")
_CHUNK = 2**16
_SHM = "/dev/shm"  # noqa: S108


def run_hub(plan: dict[str, Any]) -> None:
    """Connect the hosts by a bridge, forward their service ports, and wait for the sandbox."""
    channel = socket.socket(fileno=plan["channel"])
    _run("ip", "link", "set", "lo", "up")
    _run("ip", "link", "add", "br0", "type", "bridge")
    _run("ip", "addr", "add", f"{BRIDGE}/24", "dev", "br0")
    _run("ip", "link", "set", "br0", "up")
    starting = [_start_host(host) for host in plan["hosts"]]
    for number, (host, process) in enumerate(zip(plan["hosts"], starting, strict=True)):
        first_line = process.stdout.readline() if process.stdout else b""
        if not first_line or process.stdin is None:
            raise OSError("could not create the network namespace of a simulated machine")
        link = f"host{number}"
        peer = ("peer", "name", "eth0", "netns", str(process.pid))
        _run("ip", "link", "add", link, "type", "veth", *peer)
        _run("ip", "link", "set", link, "master", "br0", "up")
        if host["slow"]:
            _run("tc", "qdisc", "add", "dev", link, "root", *_SLOW_LINK)
        _run("ip", "addr", "add", f"{host['service']}/32", "dev", "lo")
        for port in plan["ports"]:
            listening = socket.create_server((host["service"], port), backlog=64)
            _start_thread(_forward, listening, (host["address"], port))
        process.stdin.write(b"connected\n")
        process.stdin.close()
    for process in starting:
        if process.wait():
            raise OSError(f"a simulated machine exited with code {process.returncode}")
    channel.send(b"ready")
    while number_text := channel.recv(64):
        _run("ip", "link", "set", f"host{int(number_text)}", "down")


def run_host(plan: dict[str, Any]) -> None:
    """Set up the namespaces of a replica, and send them and the listening sockets to the sandbox.

    The namespaces stay while the sandbox has their files open. The last socket is for DNS.
    """
    channel = socket.socket(fileno=plan["channel"])
    print("namespaces", flush=True)
    sys.stdin.readline()
    for arguments in (
        ("link", "set", "lo", "up"),
        ("addr", "add", f"{plan['address']}/24", "dev", "eth0"),
        ("link", "set", "eth0", "up"),
        ("route", "add", "default", "via", BRIDGE),
    ):
        _run("ip", *arguments)
    if plan["slow"]:
        _run("tc", "qdisc", "add", "dev", "eth0", "root", *_SLOW_LINK)
    socket.sethostname(plan["hostname"])
    for source, target in plan["files"].items():
        if os.path.exists(target):
            _run("mount", "--bind", source, target)
    _run("mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", _SHM)
    names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    names.bind(("127.0.0.1", 53))
    # Only this replica is in the network namespace. Names lead to addresses in 127.0.0.0/8.
    sockets = [*(socket.create_server(("0.0.0.0", port), backlog=128) for port in plan["ports"])]
    handles = [os.open(f"/proc/self/ns/{name}", os.O_RDONLY) for name in _NAMESPACES]
    socket.send_fds(channel, [b"host"], [*handles, *(sock.fileno() for sock in (*sockets, names))])


def _start_host(host: dict[str, Any]) -> subprocess.Popen[bytes]:
    command = ["unshare", "--net", "--uts", "--mount", "--propagation", "private", "--"]
    command += [sys.executable, "-I", __file__, "host", json.dumps(host)]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        pass_fds=(host["channel"],),
    )
    os.close(host["channel"])
    return process


def _forward(listening: socket.socket, target: tuple[str, int]) -> None:
    while True:
        inner, _ = listening.accept()
        try:
            outer = socket.create_connection(target, timeout=5)
        except OSError:
            inner.close()
            continue
        outer.settimeout(None)
        _start_thread(_pump, inner, outer)
        _start_thread(_pump, outer, inner)


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while chunk := source.recv(_CHUNK):
            sink.sendall(chunk)
    for sock, how in ((sink, socket.SHUT_WR), (source, socket.SHUT_RD)):
        with suppress(OSError):
            sock.shutdown(how)


def _start_thread(work: Callable[..., None], *arguments: object) -> None:
    threading.Thread(target=work, args=arguments, daemon=True).start()


def _run(*command: str) -> None:
    subprocess.run(command, capture_output=True, text=True, check=True)


if __name__ == "__main__":
    try:
        {"hub": run_hub, "host": run_host}[sys.argv[1]](json.loads(sys.argv[2]))
    except subprocess.CalledProcessError as error:
        words = " ".join(map(str, error.cmd))
        print(f"{words}: {error.stderr.strip() or error.returncode}", file=sys.stderr)
        sys.exit(1)
    except OSError as error:
        print(error, file=sys.stderr)
        sys.exit(1)
