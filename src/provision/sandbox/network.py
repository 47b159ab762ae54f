"""Connects an isolated machine to its metadata server, the sandbox and named hosts.

The host's network needs no setup. The machine passes sockets that listen inside its own network
namespace. A socket stays in the namespace in which it was created, so this process accepts
connections there and connects here. Inside, every name resolves to its own address in 127.1.0.0/16:
the address of a connection identifies the name.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import struct
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from provision.sandbox.metadata_server import METADATA_ADDRESS, METADATA_HOSTS

OUTBOUND_PORTS = (80, 443)
"""Ports on which hosts can be reached by name."""
_CHUNK = 2**16
_PREFIX = "127.1."


@dataclass
class NetworkProxy:
    """The connections of a machine.

    `loopback_ports` are the ports of this host that the machine may reach at 127.0.0.1, and
    `named_ports` those of named hosts; `serve_metadata` serves a connection and closes it.
    """

    loopback_ports: frozenset[int]
    serve_metadata: Callable[[socket.socket], None]
    named_ports: frozenset[int] = frozenset(OUTBOUND_PORTS)
    _names: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _open: list[socket.socket] = field(default_factory=list)

    def attach(self, sockets: Sequence[socket.socket]) -> None:
        """Serve sockets from inside the machine: the last one is for DNS, the others listen."""
        self._open += sockets
        for sock in sockets[:-1]:
            _start(self._accept, sock)
        _start(self._resolve, sockets[-1])

    def close(self) -> None:
        """Close the sockets; connections end with the machine."""
        for sock in self._open:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()

    def _accept(self, listening: socket.socket) -> None:
        while True:
            try:
                inner, _ = listening.accept()
            except OSError:
                return
            _start(self._connect, inner)

    def _connect(self, inner: socket.socket) -> None:
        host, port = inner.getsockname()[:2]
        if host == METADATA_ADDRESS:
            self.serve_metadata(inner)
            return
        try:
            outer = self._dial(host, port)
        except OSError:
            inner.close()
            return
        _start(_pump, inner, outer)
        _pump(outer, inner)

    def _dial(self, host: str, port: int) -> socket.socket:
        if host == "127.0.0.1" and port in self.loopback_ports:
            return socket.create_connection((host, port), timeout=30)
        name = self._name_at(host)
        if name is None or port not in self.named_ports:
            raise ConnectionRefusedError
        return socket.create_connection((_reachable(name, port), port), timeout=30)

    def _name_at(self, host: str) -> str | None:
        if not host.startswith(_PREFIX):
            return None
        high, low = (int(part) for part in host.split(".")[2:])
        with self._lock:
            position = high * 256 + low - 1
            return self._names[position] if 0 <= position < len(self._names) else None

    def _address_of(self, name: str) -> str | None:
        with self._lock:
            if name not in self._names:
                if len(self._names) >= 4096:
                    return None
                self._names.append(name)
            position = self._names.index(name) + 1
        return f"{_PREFIX}{position // 256}.{position % 256}"

    def _resolve(self, listening: socket.socket) -> None:
        while True:
            try:
                query, client = listening.recvfrom(1024)
            except OSError:
                return
            _start(self._reply, listening, query, client)

    def _reply(self, listening: socket.socket, query: bytes, client: tuple[str, int]) -> None:
        with suppress(OSError, ValueError, IndexError, struct.error):
            listening.sendto(self._answer(query), client)

    def _answer(self, query: bytes) -> bytes:
        """Return the response to a DNS query for one name, NXDOMAIN if this host cannot resolve it.

        Source: RFC 1035, section 4.
        """
        name, end = _question(query)
        kind = struct.unpack_from("!H", query, end)[0]
        address = self._address_of(name) if _is_resolvable(name) else None
        records = (
            b""
            if address is None or kind != 1
            else b"\xc0\x0c" + struct.pack("!HHIH", 1, 1, 60, 4) + socket.inet_aton(address)
        )
        flags = 0x8180 if address else 0x8183
        return (
            query[:2]
            + struct.pack("!HHHHH", flags, 1, 1 if records else 0, 0, 0)
            + query[12 : end + 4]
            + records
        )


def receive_sockets(channel: socket.socket, most: int) -> list[socket.socket]:
    """Return the sockets sent over a channel, none if the other side has ended."""
    _, handles, _, _ = socket.recv_fds(channel, 16, most)
    return [socket.socket(fileno=handle) for handle in handles]


def _reachable(name: str, port: int) -> str:
    """Return an address of a name outside this host and its link (with a real metadata server)."""
    for *_, address in socket.getaddrinfo(name, port, type=socket.SOCK_STREAM):
        parsed = ipaddress.ip_address(address[0])
        if not (
            parsed.is_link_local
            or parsed.is_loopback
            or parsed.is_unspecified
            or parsed.is_multicast
        ):
            return str(address[0])
    raise ConnectionRefusedError


def _is_resolvable(name: str) -> bool:
    if name in METADATA_HOSTS or "." not in name:
        return False
    try:
        return bool(_reachable(name, 443))
    except (OSError, UnicodeError):
        return False


def _question(query: bytes) -> tuple[str, int]:
    labels, position = [], 12
    while query[position]:
        labels.append(query[position + 1 : position + 1 + query[position]].decode("ascii").lower())
        position += query[position] + 1
    return ".".join(labels), position + 1


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while chunk := source.recv(_CHUNK):
            sink.sendall(chunk)
    for sock, how in ((sink, socket.SHUT_WR), (source, socket.SHUT_RD)):
        with suppress(OSError):
            sock.shutdown(how)


def _start(work: Callable[..., None], *arguments: object) -> None:
    threading.Thread(target=work, args=arguments, daemon=True, name=f"wires-{os.getpid()}").start()
