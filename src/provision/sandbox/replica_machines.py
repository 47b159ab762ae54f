"""Machines of custom jobs: each replica is a folder and a process of its container's command.

Each replica has its own host in network namespaces (replica_network.py). If this machine has none,
the replicas share its network: the names in CLUSTER_SPEC are loopback addresses, and the port that
the replicas meet at is a free one, in the variable that names it on Vertex AI.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from tempfile import mkdtemp

from provision.sandbox.replica_network import SERVICE_PORTS, ReplicaNetwork, find_ports
from provision.sandbox.replica_processes import end_container, kill_container
from provision.sandbox.replica_watch import ReplicaWatch
from provision.sandbox.running_jobs import PROJECT_NUMBER, JobEnd, Replica, RunningJob

_FOREIGN = ("PYTHON", "VIRTUAL_ENV", "CONDA", "JUPYTER", "IPYTHON", "GOOGLE_", "PROVISION_")
_END_S = 5.0
_LAUNCH = """import os, sys
from provision.agent.core.process import die_with_parent
die_with_parent()
os.execvp(sys.argv[1], sys.argv[1:])
"""
IMAGE_PYTHON = "PROVISION_SANDBOX_IMAGE_PYTHON"
"""The variable that names the `python3` of emulated images."""
_TRAINING_PORT = str(SERVICE_PORTS[1])


class ReplicaMachines:
    """The machines of the running jobs; they end with this process."""

    def __init__(self, folder: Path, grace_s: float) -> None:
        self._folder, self._grace_s = folder.resolve() / "replicas", grace_s
        self._is_isolated = True
        self._stopped: dict[str, threading.Event] = {}
        self._threads: dict[str, threading.Thread] = {}

    def start(
        self, job: RunningJob, started: Callable[[], None], ended: Callable[[JobEnd], None]
    ) -> None:
        """Run a job in the background. `ended` is not called for a job that is stopped."""
        stopped = threading.Event()
        self._stopped[job.name] = stopped

        def run() -> None:
            end = self._run(job, started, stopped)
            if end is not None:
                ended(end)

        thread = threading.Thread(target=run, daemon=True)
        self._threads[job.name] = thread
        thread.start()

    def stop(self, name: str) -> None:
        """End the replicas of a job, and wait for it."""
        if name in self._stopped:
            self._stopped[name].set()
        thread = self._threads.get(name)
        if thread is not None and thread is not threading.current_thread():
            thread.join(2 * _END_S)

    def close(self) -> None:
        """End all machines."""
        for name in list(self._stopped):
            self.stop(name)

    def _run(
        self, job: RunningJob, started: Callable[[], None], stopped: threading.Event
    ) -> JobEnd | None:
        replicas: list[Replica] = []
        processes: dict[str, subprocess.Popen[bytes]] = {}
        network: ReplicaNetwork | None = None
        try:
            replicas = self._make_replicas(job)
            network = self._make_network(job, replicas)
            variables = _make_variables(job, replicas, network)

            def start(replica: Replica) -> None:
                processes[replica.task] = _start(replica, variables[replica.task], network)

            for replica in replicas:
                if replica.task not in job.missing:
                    start(replica)
            started()
            watch = ReplicaWatch(job, replicas, start, processes, network, self._grace_s)
            return watch.follow(stopped)
        except OSError as problem:
            return JobEnd(f"the machines of the job were not created: {problem}")
        finally:
            for replica in replicas:
                process, is_entered = processes.get(replica.task), network is not None
                if process is None:
                    continue
                if replica.task in job.silent:  # it is stopped, and so is nsenter
                    kill_container(process, replica.home)
                else:
                    end_container(process, replica.home, is_entered=is_entered)
            if network is not None:
                network.close()
            for replica in replicas:  # the logs stay
                for part in ("root", "tmp"):
                    shutil.rmtree(replica.folder / part, ignore_errors=True)

    def _make_network(self, job: RunningJob, replicas: list[Replica]) -> ReplicaNetwork | None:
        """Return the hosts of the replicas, or None, after a notice, if they share this machine's.

        Raises:
            OSError: a fault needs hosts.
        """
        if not self._is_isolated:
            return None
        folder = replicas[0].folder.parent
        variables = (f"{key}={text}" for key, text in _inherit_variables().items())
        texts = (*job.texts, *variables, job.storage, f"http://{job.metadata}", job.secrets)
        tasks, key = [replica.task for replica in replicas], folder.name[:10]
        try:
            return ReplicaNetwork(folder, tasks, key, find_ports("\n".join(texts)), job.slow)
        except OSError as problem:
            if job.slow:
                raise OSError(f"the slow-link fault needs network namespaces: {problem}") from None
            self._is_isolated = False
            sys.stderr.write(
                "SANDBOX: the machines of jobs share the network of this machine, because it "
                f"cannot isolate them: {problem}\n"
            )
            return None

    def _make_replicas(self, job: RunningJob) -> list[Replica]:
        """Return the replicas with new folders, without those of earlier jobs of this name."""
        prefix = f"{sha256(job.name.encode()).hexdigest()[:16]}-"
        for earlier in self._folder.glob(f"{prefix}*"):
            shutil.rmtree(earlier, ignore_errors=True)
        self._folder.mkdir(parents=True, exist_ok=True)
        folder = Path(mkdtemp(prefix=prefix, dir=self._folder))
        replicas, python = [], _find_python()
        for number, pool in enumerate(job.spec["workerPoolSpecs"]):
            for index in range(int(pool.get("replicaCount", 0))):
                own = folder / f"workerpool{number}-{index}"
                (own / "bin").mkdir(parents=True)
                program = own / "bin/python3"
                program.write_text(f'#!/bin/sh\nexec {shlex.quote(python)} "$@"\n', "utf-8")
                program.chmod(0o755)
                uv = Path(sysconfig.get_path("scripts")) / "uv"
                if uv.exists():  # otherwise each replica of each job would download it
                    (own / "bin/uv").symlink_to(uv)
                replicas.append(Replica(number, index, pool["containerSpec"], own))
                replicas[-1].make_disk()
        return replicas


def _find_python() -> str:
    """Return the Python of the image: this machine's, without the packages of our environment.

    Raises:
        OSError: the one that PROVISION_SANDBOX_IMAGE_PYTHON names is not a program.
    """
    named = os.environ.get(IMAGE_PYTHON)
    if not named:
        return str(getattr(sys, "_base_executable", sys.executable))
    if not Path(named).is_file() or not os.access(named, os.X_OK):
        raise OSError(f"{IMAGE_PYTHON} does not name a program: {named}")
    return str(Path(named).absolute())


def _inherit_variables() -> dict[str, str]:
    return {key: text for key, text in os.environ.items() if not key.startswith(_FOREIGN)}


def _make_variables(
    job: RunningJob, replicas: list[Replica], network: ReplicaNetwork | None
) -> dict[str, dict[str, str]]:
    """Return the variables of each replica, by its task.

    Source: Vertex AI documentation, Distributed training; RANK and its like, and those with the
    ports, are in logs of jobs in public repositories.
    """
    names = dict.fromkeys((replica.task for replica in replicas), "127.0.0.1")
    if network is not None:
        names = {task: host.service_name for task, host in network.hosts.items()}
    cluster: dict[str, list[str]] = {}
    for replica in replicas:
        cluster.setdefault(f"workerpool{replica.pool}", []).append(f"{names[replica.task]}:2222")
    port = str(_free_port()) if network is None else _TRAINING_PORT
    variables = {}
    for rank, replica in enumerate(replicas):
        task = {"type": f"workerpool{replica.pool}", "index": replica.number}
        document = {"cluster": cluster, "environment": "cloud", "task": task, "job": job.spec}
        own = {
            variable["name"]: variable.get("value", "")
            for variable in replica.container.get("env", ())
        }
        variables[replica.task] = {
            **_inherit_variables(),
            "CLUSTER_SPEC": json.dumps(document),
            "CLOUD_ML_PROJECT_ID": PROJECT_NUMBER,
            "CLOUD_ML_JOB_ID": job.name.rpartition("/")[2],
            "RANK": str(rank),
            "WORLD_SIZE": str(len(replicas)),
            "MASTER_ADDR": names[replicas[0].task],
            "MASTER_PORT": "2222",
            "CMLE_TRAINING_WORKERPOOL0_0_SERVICE_PORT_TRAINING_PORT": port,
            "GCE_METADATA_HOST": job.metadata,
            "STORAGE_EMULATOR_HOST": job.storage,
            "PROVISION_SECRETS": job.secrets,
            **own,
            "HOME": str(replica.folder / "root"),
            "TMPDIR": str(replica.folder / "tmp"),
            "PATH": f"{replica.folder / 'bin'}:{os.environ.get('PATH', '/usr/bin:/bin')}",
        }
    return variables


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _start(
    replica: Replica, variables: Mapping[str, str], network: ReplicaNetwork | None
) -> subprocess.Popen[bytes]:
    container, folder = replica.container, replica.folder / "root"
    entering: tuple[list[str], tuple[int, ...]] = ([], ())
    if network is not None:
        entering = network.get_command(replica.task, folder)
    with (replica.folder / "log.txt").open("ab") as log:
        return subprocess.Popen(
            [
                sys.executable,
                "-P",
                "-c",
                _LAUNCH,
                *entering[0],
                *container["command"],
                *container.get("args", ()),
            ],
            cwd=folder,
            pass_fds=entering[1],
            env=dict(variables),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
