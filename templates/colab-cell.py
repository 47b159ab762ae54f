# @title Set up and verify the environment { display-mode: "form" }
# Written by `provision render`. ABOUT names the spec and the lock, and the command that renders this cell again; the program is below it.
# The program is the same for every spec: all values of the spec are data in ABOUT. Run it as often as you like: nothing is installed twice.
# @markdown Continue if the machine does not meet the spec:
CONTINUE_ANYWAY = False  # @param {type:"boolean"}
# @markdown Restart the runtime automatically if a loaded package was replaced:
RESTART_WHEN_NEEDED = False  # @param {type:"boolean"}

ABOUT = {"ABOUT": "HERE"}


class _ProvisionStopped(Exception):
    def _render_traceback_(self):
        return [str(self)]


def _provision_token():
    import contextlib
    import importlib

    # Another kernel has the credentials of its machine.
    with contextlib.suppress(ImportError):
        importlib.import_module("google.colab.auth").authenticate_user()
    google_auth = importlib.import_module("google.auth")
    transport = importlib.import_module("google.auth.transport.requests")
    credentials, _ = google_auth.default(scopes=["https://www.googleapis.com/auth/devstorage.read_write"])
    credentials.refresh(transport.Request())
    return credentials.token


def _provision_request(address):
    import os
    import urllib.parse
    import urllib.request

    # GitHub's API returns a file itself for this type; other servers ignore it.
    headers = {"Accept": "application/vnd.github.raw+json, */*"}
    if not address.startswith("gs://"):
        return urllib.request.Request(address, headers=headers)
    bucket, _, name = address[len("gs://") :].partition("/")
    emulator = os.environ.get("STORAGE_EMULATOR_HOST")
    url = f"{emulator or 'https://storage.googleapis.com'}/storage/v1/b/{bucket}/o/{urllib.parse.quote(name, safe='')}?alt=media"
    request = urllib.request.Request(url)
    if not emulator:
        # A redirect does not get the token.
        request.add_unredirected_header("Authorization", f"Bearer {_provision_token()}")
    return request


def _provision_fetch(address, whole_s=600):
    import threading
    import urllib.request

    content, why = [], [f"no complete response within {whole_s} s"]
    try:
        request = _provision_request(address)
    except Exception as error:  # noqa: BLE001
        return b"", f"no access to Google Cloud ({type(error).__name__}): in Colab, allow it in the dialog that opens"

    def fetch():
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                content.append(answer.read(2**28))
        except (OSError, ValueError) as error:
            why[0] = error

    # The timeout of urlopen limits only the pause between two bytes. A thread that is still running changes nothing.
    thread = threading.Thread(target=fetch, daemon=True)
    thread.start()
    thread.join(whole_s)
    return (content[0], "") if content else (b"", str(why[0]))


def _provision_is_payload(content):
    import hashlib

    return hashlib.sha256(content).hexdigest() == ABOUT["payload_sha256"]


def _provision_fetch_payload():
    problems = []
    for address in ABOUT["payload_urls"]:
        content, why = _provision_fetch(address)
        if _provision_is_payload(content):
            return content
        problems.append(f"{address}: {why or 'this file is not the payload of this cell'}")
    help_lines = ["nothing was changed; run this cell again when the payload can be fetched", f"or render the cell again: {ABOUT['make_again']}"]
    raise _ProvisionStopped("\n  ".join(["provision: cannot fetch the payload of this cell", *problems, *help_lines, f"or {ABOUT['embed']}"]))


def _provision_payload():
    import base64
    import lzma

    if ABOUT["payload_urls"]:
        return _provision_fetch_payload()
    try:
        content = lzma.decompress(base64.b85decode("".join(ABOUT["payload"])))
    except (ValueError, TypeError, lzma.LZMAError):
        content = b""
    if not _provision_is_payload(content):
        damaged = "provision: this cell was edited or is incomplete: its payload does not match its digest"
        raise _ProvisionStopped(f"{damaged}\n  nothing was changed; render the cell again: {ABOUT['make_again']}")
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


def _provision_write(content):
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
                raise OSError("it belongs to a different user")
            for name, member in members.items():
                path = os.path.join(folder, name)
                with open(f"{path}.{os.getpid()}", "wb") as file:
                    file.write(member)
                os.replace(f"{path}.{os.getpid()}", path)
            return folder
        except OSError as error:
            problems.append(f"{folder}: {error.strerror or error}")
    raise _ProvisionStopped("\n  ".join(["provision: no writable folder for the cell's files; nothing was changed", *problems]))


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
    folder = _provision_write(_provision_payload())
    _provision_cell(folder).start(folder, continue_anyway=CONTINUE_ANYWAY, restart=RESTART_WHEN_NEEDED)


def _provision_main():
    try:
        _provision_start()
    except Exception as error:
        lines = getattr(error, "_render_traceback_", None)
        # IPython calls it itself. Without a kernel, Python would print a traceback.
        if lines is None or "get_ipython" in globals():
            raise
        raise SystemExit("\n".join(lines())) from None


_provision_main()
