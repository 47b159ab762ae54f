"""How a person gets onto an instance: the address of its JupyterLab, and the line that opens a
shell.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from provision.commands.shared.load import LoadedSpec
from provision.effects import System
from provision.errors import Refused
from provision.state_store import LocalStore
from provision.targets.workbench import build_resource_name


@dataclass(frozen=True, slots=True)
class InstanceAccess:
    """Ways onto one instance: its state, the address of JupyterLab ("" when it has none now), and
    command lines to copy.
    """

    target: str
    instance: str
    state: str
    url: str
    ssh: str
    tunnel: str


def describe_access(
    loaded: LoadedSpec, names: tuple[str, ...], system: System
) -> tuple[InstanceAccess, ...]:
    """Return the ways onto the instance of each named target; raises Refused where none is
    recorded, or it is gone.
    """
    state = LocalStore(loaded.folder, system).load_ledger().state
    return tuple(
        _instance_access(loaded, name, state.resource(f"{loaded.stem}/{name}", "instance"), system)
        for name in names
    )


def _instance_access(
    loaded: LoadedSpec, name: str, record: object, system: System
) -> InstanceAccess:
    if not isinstance(record, dict) or not record.get("zone"):
        raise Refused(
            f"no instance is recorded for {loaded.stem}/{name}",
            hint=f"make it with `provision apply {shlex.quote(str(loaded.path))} --target {name}`",
        )
    found = system.cloud().instance(build_resource_name(record))
    if found is None:
        raise Refused(
            f"{record['instance']} is gone",
            why=f"{build_resource_name(record)} is not there",
            hint=f"make it again with `provision apply {loaded.path}`",
        )
    address = str(found.get("proxyUri", ""))
    url = address if not address or "://" in address else f"https://{address}"
    shell = [
        "gcloud",
        "compute",
        "ssh",
        record["instance"],
        f"--project={record['project']}",
        f"--zone={record['zone']}",
    ]
    tunnel = [*shell, "--", "-L", "8080:localhost:8080"]
    return InstanceAccess(
        name,
        record["instance"],
        str(found.get("state", "")),
        url,
        shlex.join(shell),
        shlex.join(tunnel),
    )
