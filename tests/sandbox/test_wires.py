"""The wires of a machine: names get addresses of their own, and nothing is reached that should not
be.
"""

from __future__ import annotations

import socket
import struct
import threading
from pathlib import Path

import pytest

from provision.sandbox.network import NetworkProxy, _reachable


@pytest.fixture
def wires() -> NetworkProxy:
    return NetworkProxy(frozenset(), lambda connection: connection.close())


def question(name: str, kind: int = 1) -> bytes:
    labels = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
    return (
        struct.pack("!HHHHHH", 7, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack("!HH", kind, 1)
    )


def flags(answer: bytes) -> tuple[int, int]:
    return struct.unpack_from("!H", answer, 2)[0] & 15, struct.unpack_from("!H", answer, 6)[0]


@pytest.mark.parametrize(
    "name", ["metadata.google.internal", "localhost", "no-such-host.invalid", "a-name"]
)
def test_a_name_that_is_not_outside_does_not_exist(wires: NetworkProxy, name: str) -> None:
    assert flags(wires._answer(question(name))) == (3, 0)


def test_names_have_addresses_that_lead_back_to_them(wires: NetworkProxy) -> None:
    addresses = [wires._address_of(f"host{number}.example") for number in range(300)]
    assert addresses[0] == "127.1.0.1"
    assert len(set(addresses)) == 300
    assert [wires._name_at(str(address)) for address in addresses] == [
        f"host{number}.example" for number in range(300)
    ]
    assert wires._address_of("host0.example") == "127.1.0.1"
    assert wires._name_at("127.1.200.1") is None
    assert wires._name_at("127.0.0.1") is None


def test_addresses_do_not_run_out_into_others(wires: NetworkProxy) -> None:
    assert [wires._address_of(f"n{number}.example") for number in range(4097)][-1] is None


@pytest.mark.parametrize("name", ["127.0.0.1", "169.254.169.254", "0.0.0.0", "::1"])
def test_this_machine_and_its_link_are_not_reached_by_name(name: str) -> None:
    with pytest.raises(ConnectionRefusedError):
        _reachable(name, 80)


def test_a_port_of_this_machine_is_reached_where_it_was_named_only(tmp_path: Path) -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    threading.Thread(target=lambda: listening.accept()[0].sendall(b"hello"), daemon=True).start()
    with pytest.raises(ConnectionRefusedError):
        NetworkProxy(frozenset({port + 1}), lambda _: None)._dial("127.0.0.1", port)
    with NetworkProxy(frozenset({port}), lambda _: None)._dial("127.0.0.1", port) as outer:
        assert outer.recv(5) == b"hello"
    listening.close()


@pytest.mark.parametrize("asked", [b"", b"\0" * 12, question("a.b")[:15], b"\xff" * 600])
def test_a_question_that_is_none_ends_nothing(wires: NetworkProxy, asked: bytes) -> None:
    listening = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    listening.bind(("127.0.0.1", 0))
    wires._reply(listening, asked, listening.getsockname())
    listening.close()
