"""What the real shell takes from IPython and ipython_genutils: later versions of IPython lack some
of it, and then no kernel starts.
"""

from ipykernel import zmqshell
from IPython.core import oinspect
from IPython.utils import PyColorize, coloransi
from ipython_genutils import py3compat


class Shell(zmqshell.ZMQInteractiveShell):
    """The shell of a kernel."""


def check():
    """Fail as the real shell does where IPython no longer has what it is made of."""
    return oinspect.InspectColors, PyColorize.ANSICodeColors, coloransi.TermColors, py3compat.PY3
