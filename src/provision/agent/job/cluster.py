"""The place of a replica in its job, from the variables that Vertex AI sets."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass

_PORT = 3333
"""The port that a job's machines reach one another on, through the chief's name. Measured: with the
others of the service names (2222, 6000) static rendezvous works too; a port that is not forwarded
hangs silently.
"""
_PORT_VARIABLE = re.compile(r"CMLE_TRAINING_WORKERPOOL0_\w*SERVICE_PORT_TRAINING_PORT")


class ClusterError(Exception):
    """The variables do not describe a place; the text is one line."""


@dataclass(frozen=True, slots=True)
class ClusterPlace:
    """A replica: its name (workerpool1-0), its rank, and where the processes of the job meet.

    `names` are those of all replicas in the order of their ranks; `address` is the one at which
    the others reach this machine.
    """

    name: str
    rank: int
    names: tuple[str, ...]
    chief: str
    port: int
    address: str


def read_place(environ: Mapping[str, str]) -> ClusterPlace:
    """Return the place in CLUSTER_SPEC, or that of the only replica.

    Pools count in their order; empty ones are left out.

    Raises:
        ClusterError: CLUSTER_SPEC is malformed.
    """
    text = environ.get("CLUSTER_SPEC", "")
    if not text:
        return ClusterPlace("workerpool0-0", 0, ("workerpool0-0",), "127.0.0.1", _PORT, "127.0.0.1")
    try:
        document = json.loads(text)
        pools = sorted(document["cluster"].items())
        hosts = {
            f"{pool}-{index}": str(host) for pool, own in pools for index, host in enumerate(own)
        }
        task = document["task"]
        name = f"{task['type']}-{int(task['index'])}"
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ClusterError(f"CLUSTER_SPEC is malformed: {type(error).__name__}: {error}") from None
    if name not in hosts:
        raise ClusterError(f"CLUSTER_SPEC does not list this replica, {name}")
    names = tuple(hosts)
    chief = hosts[names[0]].rpartition(":")[0] or hosts[names[0]]
    ports = [value for key, value in environ.items() if _PORT_VARIABLE.fullmatch(key)]
    port = int(ports[0]) if ports and ports[0].isdecimal() else _PORT
    return ClusterPlace(name, names.index(name), names, chief, port, find_own_address(chief))


def find_own_address(chief: str) -> str:
    """Return the address of the interface through which the chief is reached.

    A replica's own host name is unknown to the others, so torch must not publish it.
    """
    try:
        where = socket.getaddrinfo(chief, 1, type=socket.SOCK_DGRAM)[0][4]
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect(where)
            return str(probe.getsockname()[0])
    except OSError:
        return "127.0.0.1"
