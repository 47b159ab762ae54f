"""The first process of an isolated machine: sets up its network and root, and runs its program.

The standard library is enough to run it. namespace_booter.py starts it in new namespaces, with its
plan as JSON in one argument. It ends when the channel to the host closes. Its mounts disappear with
the namespaces, and those of the host do not change.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

# From linux/sockios.h and linux/if.h.
_SIOCGIFFLAGS = 0x8913
_SIOCSIFFLAGS = 0x8914
_SIOCSIFADDR = 0x8916
_SIOCSIFNETMASK = 0x891C
_IFF_UP = 1
_METADATA = "169.254.169.254"
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_SYSTEM = ("usr", "etc", "opt", "var", "srv", "bin", "sbin", "lib", "lib32", "lib64", "libx32")
_DROPPED_CAPABILITIES = (
    "sys_module",
    "sys_rawio",
    "sys_boot",
    "sys_time",
    "sys_ptrace",
    "sys_admin",
    "mknod",
    "syslog",
    "mac_admin",
    "mac_override",
    "bpf",
    "perfmon",
)
HALT_FILE = "/run/halt"


def main() -> int:
    """Run the machine and return the exit code of its program."""
    plan = json.loads(sys.argv[1])
    channel = socket.socket(fileno=plan["channel"])
    _network(channel, plan["ports"])
    os.chdir(plan["folder"])
    root = _root(plan)
    _enter(root)
    with suppress(OSError):
        socket.sethostname(plan["hostname"])
    return _live(plan, channel)


def _network(channel: socket.socket, ports: list[int]) -> None:
    """Set up the loopback interface, and send listening sockets and one for DNS to the host."""
    names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    request = struct.pack("16sh22x", b"lo", 0)
    (flags,) = struct.unpack_from("h", fcntl.ioctl(names, _SIOCGIFFLAGS, request), 16)
    fcntl.ioctl(names, _SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", flags | _IFF_UP))
    for number, address in ((_SIOCSIFADDR, _METADATA), (_SIOCSIFNETMASK, "255.255.255.255")):
        packed = socket.inet_aton(address)
        fcntl.ioctl(names, number, struct.pack("16sHH4s16x", b"lo:0", socket.AF_INET, 0, packed))
    names.bind(("127.0.0.1", 53))
    # The network namespace contains only this machine.
    sockets = [*(socket.create_server(("0.0.0.0", port), backlog=128) for port in ports), names]
    socket.send_fds(channel, [b"sockets"], [sock.fileno() for sock in sockets])
    for sock in sockets:
        sock.close()


def _root(plan: dict[str, Any]) -> Path:
    """Build the root of the machine and return its folder.

    It contains the host's system folders, with the sandbox's files above them and a writable layer
    on top, a data disk, and little else of the host.
    """
    root = Path("root")
    root.mkdir(exist_ok=True)
    _mount_tmpfs(root)
    boot = _boot_disk(plan["boot"])
    for name in _SYSTEM:
        host_folder = Path("/", name)
        if host_folder.is_symlink():
            (root / name).symlink_to(os.readlink(host_folder))
        elif host_folder.is_dir():
            (root / name).mkdir()
            _mount_layers(name, root, boot)
    for name, options in (("run", "mode=755"), ("tmp", "mode=1777"), ("dev", "mode=755")):
        (root / name).mkdir()
        _mount_tmpfs(root / name, options)
    for name, kind, options in (("proc", "proc", "nosuid"), ("sys", "sysfs", "ro")):
        (root / name).mkdir()
        _mount("-t", kind, "-o", options, kind, root / name)
    for source in ("/proc/sys", "/proc/sysrq-trigger", "/sys/fs/cgroup"):
        with suppress(subprocess.CalledProcessError):
            _bind_read_only(source, Path(f"{root}{source}"))
    _make_devices(root / "dev")
    (root / "root").mkdir(mode=0o711)  # what is shown below it is for everyone inside
    home = root / "home/jupyter"
    home.mkdir(parents=True)
    _mount("--bind", "disk", home)
    if plan["owner"] is not None:
        os.chown(home, plan["owner"], plan["owner"])
    for source, path in plan["binds"]:
        target = root / path.lstrip("/")
        if os.path.isdir(source):
            target.mkdir(parents=True, exist_ok=True)
        elif not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.touch()
        _bind_read_only(source, target)
    return root


def _boot_disk(boot: str) -> str:
    """Return the folder of the writable layers.

    It is memory if an overlay cannot write to the disk (because the disk is an overlay itself):
    such a machine loses its changes at each start.
    """
    if not boot:
        return ""
    for folder in ("upper", "work", "root"):
        Path(boot, ".try", folder).mkdir(parents=True, exist_ok=True)
    try:
        upper, work = f"{boot}/.try/upper", f"{boot}/.try/work"
        _mount_overlay(f"lowerdir=/usr,upperdir={upper},workdir={work}", f"{boot}/.try/root")
        _run("umount", f"{boot}/.try/root")
    except subprocess.CalledProcessError:
        _mount_tmpfs(boot)
    return boot


def _mount_layers(name: str, root: Path, boot: str) -> None:
    """Mount a system folder of the host with the sandbox's files and a writable layer above it."""
    target = root / name
    lower = f"layer/{name}:/{name}" if Path("layer", name).is_dir() else f"/{name}"
    if boot:
        upper, work = Path(boot, name, "upper"), Path(boot, name, "work")
        for folder in (upper, work):
            folder.mkdir(parents=True, exist_ok=True)
        shutil.copystat(f"/{name}", upper)
        _mount_overlay(f"lowerdir={lower},upperdir={upper},workdir={work}", target)
        return
    # A read-only overlay requires two lower folders.
    lower = lower if ":" in lower else f"{lower}:{lower}"
    try:
        _mount_overlay(f"lowerdir={lower}", target)
    except subprocess.CalledProcessError:
        _mount("--rbind", f"/{name}", target)
    if name == "opt":
        _mount_tmpfs(target / "c2d")
        shutil.copytree("layer/opt/c2d", target / "c2d", dirs_exist_ok=True)
    if name == "var":
        _mount_tmpfs(target)
        for inner in ("log", "lib", "tmp", "cache", "lib/provision"):
            (target / inner).mkdir()
        Path("state").mkdir(exist_ok=True)
        _mount("--bind", "state", target / "lib/provision")


def _make_devices(folder: Path) -> None:
    for name in _DEVICES:
        if stat.S_ISCHR(os.stat(f"/dev/{name}").st_mode):
            (folder / name).touch()
            _mount("--bind", f"/dev/{name}", folder / name)
    (folder / "shm").mkdir()
    _mount_tmpfs(folder / "shm", "mode=1777")
    (folder / "fd").symlink_to("/proc/self/fd")
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        (folder / name).symlink_to(f"/proc/self/fd/{number}")


def _bind_read_only(source: str, target: Path) -> None:
    """Mount a file or folder of the host inside the machine, read only."""
    _mount("--bind", source, target)
    # In a user namespace some flags are locked; its users cannot write in any case.
    with suppress(subprocess.CalledProcessError):
        _mount("-o", "remount,bind,ro", target)


def _enter(root: Path) -> None:
    (root / ".old").mkdir()
    os.chdir(root)
    subprocess.run(["pivot_root", ".", ".old"], check=True)
    os.chdir("/")
    _run("umount", "-l", "/.old")
    os.rmdir("/.old")


def _live(plan: dict[str, Any], channel: socket.socket) -> int:
    """Start the program and wait until it and the channel end, or until the machine halts."""
    dropped = ",".join(f"-{name}" for name in _DROPPED_CAPABILITIES)
    prefix = ["setpriv", "--bounding-set", dropped] if shutil.which("setpriv") else []
    program = subprocess.Popen(
        [*prefix, *plan["command"]],
        env=plan["environment"],
        cwd="/",
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    code: int | None = None
    while not os.path.exists(HALT_FILE):
        for pid, status in _reaped():
            if pid == program.pid:
                code = program.returncode = os.waitstatus_to_exitcode(status)
                channel.send(json.dumps({"ended": code}).encode())
        readable, _, _ = select.select([channel], [], [], 0.1)
        if readable and not channel.recv(64):
            return code or 0
    channel.send(json.dumps({"halted": True}).encode())
    return code or 0


def _reaped() -> list[tuple[int, int]]:
    ended = []
    with suppress(ChildProcessError):
        while (ended_process := os.waitpid(-1, os.WNOHANG))[0]:
            ended.append(ended_process)
    return ended


def _mount_overlay(options: str, target: str | Path) -> None:
    _mount("-t", "overlay", "-o", options, "overlay", target)


def _mount_tmpfs(target: str | Path, options: str = "mode=755") -> None:
    _mount("-t", "tmpfs", "-o", options, "tmpfs", target)


def _mount(*arguments: str | Path) -> None:
    _run("mount", *arguments)


def _run(*command: str | Path) -> None:
    subprocess.run(command, capture_output=True, text=True, check=True)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as error:
        command = " ".join(map(str, error.cmd))
        print(f"{command}: {(error.stderr or '').strip() or error.returncode}", file=sys.stderr)
        sys.exit(125)
    except OSError as error:
        print(f"cannot create the machine: {error}", file=sys.stderr)
        sys.exit(125)
