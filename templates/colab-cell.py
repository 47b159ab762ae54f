# @title Make and prove the environment { display-mode: "form" }
# Written by `provision render`. ABOUT says which spec and lock it was made from, and how to make it again; the program itself stands below it.
# The program is the same for everyone: all that a spec says is data in ABOUT. Run it as often as you like: nothing is installed twice.
# @markdown Go on when the machine is not the one that was asked for:
CONTINUE_ANYWAY = False  # @param {type:"boolean"}
# @markdown Restart the runtime by itself when something that is loaded was replaced:
RESTART_WHEN_NEEDED = False  # @param {type:"boolean"}

ABOUT = {"ABOUT": "HERE"}


class _ProvisionStopped(Exception):
    def _render_traceback_(self):
        return [str(self)]


def _provision_fetched(address, whole_s=600):
    import threading
    import urllib.request

    came, why = [], [f"it did not come within {whole_s} s"]

    def fetch():
        try:
            with urllib.request.urlopen(address, timeout=60) as answer:
                came.append(answer.read(2**28))
        except (OSError, ValueError) as error:
            why[0] = error

    # The timeout of urlopen limits the pause between two bytes; a thread that is left behind changes nothing.
    thread = threading.Thread(target=fetch, daemon=True)
    thread.start()
    thread.join(whole_s)
    if not came:
        raise _ProvisionStopped(f"provision: cannot fetch {address}: {why[0]}\n  nothing was changed; run this cell again when it can be reached")
    return came[0]


def _provision_payload():
    import base64
    import hashlib
    import lzma

    if ABOUT["payload_url"]:
        damaged = f"what lies at {ABOUT['payload_url']} is not the payload that this cell was made with"
        content = _provision_fetched(ABOUT["payload_url"])
    else:
        damaged = "this cell was edited or cut short: its payload is not the one that it was made with"
        try:
            content = lzma.decompress(base64.b85decode("".join(ABOUT["payload"])))
        except (ValueError, TypeError, lzma.LZMAError):
            content = b""
    if hashlib.sha256(content).hexdigest() != ABOUT["payload_sha256"]:
        raise _ProvisionStopped(f"provision: {damaged}\n  nothing was changed; make it again: {ABOUT['make_again']}")
    return content


def _provision_bases():
    import os
    import tempfile

    if os.environ.get("PROVISION_CELL_BASE"):
        yield os.environ["PROVISION_CELL_BASE"]
    if os.path.isdir("/content"):
        yield "/content/.provision"
    yield os.path.expanduser("~/.provision-colab")
    yield os.path.join(tempfile.gettempdir(), f"provision-colab-{os.getuid()}")


def _provision_written(content):
    import io
    import os
    import zipfile

    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    problems = []
    for base in _provision_bases():
        folder = os.path.join(base, ABOUT["payload_sha256"][:12])
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            if {os.stat(base).st_uid, os.stat(folder).st_uid} != {os.getuid()}:
                raise OSError("it belongs to another user")
            for name, member in members.items():
                path = os.path.join(folder, name)
                with open(f"{path}.{os.getpid()}", "wb") as file:
                    file.write(member)
                os.replace(f"{path}.{os.getpid()}", path)
            return folder
        except OSError as error:
            problems.append(f"{folder}: {error.strerror or error}")
    raise _ProvisionStopped("\n  ".join(["provision: there is no folder to work in; nothing was changed", *problems]))


def _provision_cell(folder):
    import importlib
    import os
    import sys

    for name in [name for name in sys.modules if name.split(".")[0] == "provision_cell"]:
        del sys.modules[name]
    sys.path[:] = [os.path.join(folder, "cell.pyz"), *(path for path in sys.path if os.path.basename(path) != "cell.pyz")]
    importlib.invalidate_caches()
    return importlib.import_module("provision_cell")


def _provision_start():
    folder = _provision_written(_provision_payload())
    _provision_cell(folder).start(folder, continue_anyway=CONTINUE_ANYWAY, restart=RESTART_WHEN_NEEDED)


_provision_start()
