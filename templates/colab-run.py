# @title Run a script in the environment { display-mode: "form" }
# Written by `provision render`. The environment is separate from this notebook, which cannot import its packages: this cell runs a script in it.
# @markdown The script and its arguments, as in a terminal:
SCRIPT = ""  # @param {type:"string"}

ABOUT = {"ABOUT": "HERE"}


class _ProvisionStopped(Exception):
    def _render_traceback_(self):
        return [str(self)]


def _provision_folder():
    import os
    import tempfile

    bases = [os.environ.get("PROVISION_CELL_BASE"), "/content/.provision", os.path.expanduser("~/.provision-colab")]
    bases += [os.path.join(tempfile.gettempdir(), f"provision-colab-{os.getuid()}")]
    for base in filter(None, bases):
        folder = os.path.join(base, ABOUT["payload_sha256"][:12])
        if os.path.isfile(os.path.join(folder, "cell.pyz")) and {os.stat(base).st_uid, os.stat(folder).st_uid} == {os.getuid()}:
            return folder
    raise _ProvisionStopped("provision: the environment is not set up on this runtime\n  run the first cell of this notebook")


def _provision_cell(folder):
    import importlib
    import os
    import sys

    for name in [name for name in sys.modules if name.split(".")[0] == "provision_cell"]:
        del sys.modules[name]
    sys.path[:] = [os.path.join(folder, "cell.pyz"), *(path for path in sys.path if os.path.basename(path) != "cell.pyz")]
    importlib.invalidate_caches()
    return importlib.import_module("provision_cell")


def _provision_run():
    import shlex

    words = shlex.split(SCRIPT)
    if not words:
        raise _ProvisionStopped("provision: SCRIPT is empty\n  enter a script and its arguments, for example: train.py --epochs 1")
    folder = _provision_folder()
    _provision_cell(folder).run(folder, words)


_provision_run()
