"""One run, phase after phase, told as it goes."""

from __future__ import annotations

from pathlib import Path

from .cloud import Cloud, CloudError
from .document import Document, Fetched
from .machine import Machine, PhaseFailed
from .making import find_python, find_uv, forget_old, is_whole, make, make_paths, prefix, register_kernel
from .preparing import await_driver, install_system_packages
from .proving import Proof, fetch_secrets, prove, simulated
from .telling import Teller


def run(document: Document, machine: Machine, cloud: Cloud, teller: Teller, log: Path) -> int:
    """Do all phases and return 0; 1 when one of them failed, which is told with its reason. A verification that fails is a run that is done."""
    try:
        proof = _phases(document, machine, cloud, teller)
        teller.begin("report")
        cloud.write_object(document.report, proof.report, "application/json")
    except (PhaseFailed, CloudError) as error:
        return _failed(teller, log, str(error))
    except Exception as error:  # noqa: BLE001 - our own fault: it is told too
        return _failed(teller, log, f"fault of the program itself: {type(error).__name__}: {error}")
    teller.say(f"verdict {proof.verdict}")
    teller.send_log(log)
    teller.result(proof.verdict, proof.code, proof.report)
    teller.end()
    (machine.work / "done").touch()
    return 0


def _phases(document: Document, machine: Machine, cloud: Cloud, teller: Teller) -> Proof:
    teller.begin("start")
    _fetch(document.installer, machine.work / "installer.pyz", cloud)
    _fetch(document.probe, machine.work / "probe.pyz", cloud)
    if document.gpu is not None:
        teller.begin("driver")
        teller.say(f"driver: {await_driver(document, machine)}")
    if document.system_packages:
        teller.begin("system")
        teller.say(f"system packages installed: {', '.join(install_system_packages(document, machine)) or 'none'}")
    if is_whole(document, machine):
        teller.say(f"environment {prefix(document, machine)} is as locked: nothing to install")
    else:
        _make(document, machine, teller)
    teller.installed = document.packages
    make_paths(document, machine)
    if document.kernel is not None:
        teller.begin("kernel")
        teller.say(f"Jupyter kernel: {register_kernel(document, machine) or 'none, ipykernel is not among the packages'}")
    teller.begin("verify")
    return prove(document, machine, fetch_secrets(document, cloud, machine), simulated(document, cloud))


def _make(document: Document, machine: Machine, teller: Teller) -> None:
    teller.begin("python")
    uv = find_uv(document, machine)
    python = find_python(document, uv, machine)
    teller.say(f"uv {uv}, python {python}")
    teller.begin("packages")
    counts = make(document, uv, python, machine, teller.count)
    teller.say("packages: " + (", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()) if count) or "none"))
    for name in forget_old(document, machine):
        teller.say(f"environment {name} of an earlier lock was removed")


def _fetch(wanted: Fetched, path: Path, cloud: Cloud) -> None:
    path.write_bytes(cloud.read_object(wanted.address, wanted.sha256))


def _failed(teller: Teller, log: Path, why: str) -> int:
    for line in why.splitlines()[:20]:
        teller.say(line)
    teller.send_log(log)
    teller.end(why)
    return 1
