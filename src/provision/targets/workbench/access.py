"""Ways to reach an instance: the URL of its JupyterLab and the commands that open a shell."""

from __future__ import annotations

import shlex
from pathlib import Path

from provision.effects.system import Reader
from provision.errors import Refused
from provision.spelling import format_command
from provision.state import State
from provision.targets.capabilities import InstanceAccess
from provision.targets.workbench.records import InstanceRecord


def describe_instance_access(
    address: str, state: State, spec_path: Path, reader: Reader
) -> InstanceAccess:
    """Return the ways to reach the recorded instance of an address.

    Raises:
        Refused: none is recorded, or it is gone.
    """
    target = address.rpartition("/")[2]
    apply = format_command("apply", spec_path, target)
    record = InstanceRecord.find(state, address)
    if record is None or not record.zone:
        raise Refused(
            f"no instance is recorded for {address}",
            hint=f"create one with `{apply}`",
        )
    instance = reader.cloud().instance(record.resource_name)
    if instance is None:
        raise Refused(
            f"{record.instance} no longer exists",
            why=f"Google Cloud does not list {record.resource_name}",
            hint=f"create it again with `{apply}`",
        )
    url = str(instance.get("proxyUri", ""))
    if url and "://" not in url:
        url = f"https://{url}"
    options = [f"--project={record.project}", f"--zone={record.zone}"]
    shell = ["gcloud", "compute", "ssh", record.instance, *options]
    tunnel = [*shell, "--", "-L", "8080:localhost:8080"]
    return InstanceAccess(
        target,
        record.instance,
        str(instance.get("state", "")),
        url,
        shlex.join(shell),
        shlex.join(tunnel),
    )
