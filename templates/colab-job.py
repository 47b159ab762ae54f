# Written by `provision apply`. Runs the cell that sets up and verifies the environment, and writes its report to Cloud Storage, even if the cell fails.
# The program is the same for every spec: all values of the spec are data in ABOUT.
ABOUT = {"ABOUT": "HERE"}


class _ProvisionStopped(Exception):
    def _render_traceback_(self):
        return [str(self)]


def _provision_read(nonce, name):
    import json
    import os
    import tempfile

    bases = [os.environ.get("PROVISION_CELL_BASE"), "/content/.provision", os.path.expanduser("~/.provision-colab")]
    bases += [os.path.join(tempfile.gettempdir(), f"provision-colab-{os.getuid()}")]
    for base in filter(None, bases):
        try:
            with open(os.path.join(base, "status.json"), encoding="utf-8") as file:
                is_own = json.load(file).get("nonce") == nonce
            if is_own:
                with open(os.path.join(base, name), "rb") as file:
                    return file.read(2**25)
        except (OSError, ValueError):
            continue
    return None


def _provision_token():
    import importlib

    google_auth = importlib.import_module("google.auth")
    transport = importlib.import_module("google.auth.transport.requests")
    credentials, _ = google_auth.default(scopes=["https://www.googleapis.com/auth/devstorage.read_write"])
    credentials.refresh(transport.Request())
    return credentials.token


def _provision_upload(address, content):
    import os
    import urllib.parse
    import urllib.request

    bucket, _, name = address[len("gs://") :].partition("/")
    emulator = os.environ.get("STORAGE_EMULATOR_HOST")
    headers = {"Content-Type": "application/json"}
    if not emulator:
        headers["Authorization"] = f"Bearer {_provision_token()}"
    query = urllib.parse.urlencode({"uploadType": "media", "name": name})
    url = f"{emulator or 'https://storage.googleapis.com'}/upload/storage/v1/b/{bucket}/o?{query}"
    with urllib.request.urlopen(urllib.request.Request(url, content, headers, method="POST"), timeout=120) as answer:
        answer.read()


def _provision_job(about):
    result = get_ipython().run_cell("\n".join(about["cell"]))  # noqa: F821
    problems = []
    # The status comes last: it says that the rest is there.
    for name in ("report.json", "status.json"):
        content = _provision_read(about["nonce"], name)
        if content is not None:
            try:
                _provision_upload(about["folder"] + name, content)
            except Exception as error:  # noqa: BLE001
                problems.append(f"cannot write {about['folder']}{name}: {error}")
    if problems:
        raise _ProvisionStopped("\n  ".join(["provision: the report was not stored", *problems]))
    if not result.success:
        raise _ProvisionStopped("provision: the environment was not verified; the output above says why")


_provision_job(dict(ABOUT))
