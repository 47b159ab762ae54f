"""Command with which Jupyter starts a kernel of an environment.

It uses the path that survives the next lock, and notes the kernel as a user of the environment.
"""

from __future__ import annotations

_LAUNCHER = """\
import os, sys
real = os.path.realpath(sys.prefix)
try:
    import fcntl
    notes = os.path.join(os.path.dirname(os.path.dirname(real)), "use", os.path.basename(real))
    os.makedirs(notes, mode=0o700, exist_ok=True)
    held = os.open(os.path.join(notes, str(os.getpid())), os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.write(held, b"process %d: a Jupyter kernel" % os.getpid())
    os.set_inheritable(held, True)
except (ImportError, OSError):
    pass
python = os.path.join(real, "bin", "python")
os.execv(python, [python, "-m", "ipykernel_launcher", *sys.argv[1:]])
"""  # noqa: E501
"""Holds what provision.adapters.process reads. Nothing but the standard library: it runs
in the environment.
"""


def build_kernel_argv(python: str) -> list[str]:
    """Return the `argv` of a kernel.json for the Python of an environment."""
    return [python, "-c", _LAUNCHER, "-f", "{connection_file}"]
