"""The command of each replica of a job: fetches the program and its document, and starts it.

The variable PROVISION_RUN names both objects with their sha256. No value of a spec is in this text.
"""

import hashlib
import json
import os
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

if sys.version_info < (3, 10):  # noqa: UP036 - the image is the user's choice
    sys.exit(f"provision: this image has Python {sys.version.split()[0]}; 3.10 or newer is needed")

HOST = os.environ.get("GCE_METADATA_HOST", "metadata.google.internal")
METADATA = f"http://{HOST}/computeMetadata/v1"
STORAGE = os.environ.get("STORAGE_EMULATOR_HOST", "https://storage.googleapis.com").rstrip("/")
LATER = (408, 429, 500, 502, 503, 504)
TRIES = 6


def fetch(url, headers, *handlers):
    """Return the content at an address; temporary failures are repeated."""
    opener = urllib.request.build_opener(*handlers)
    for attempt in range(TRIES):
        try:
            with opener.open(urllib.request.Request(url, headers=headers), timeout=60) as answer:
                return answer.read()
        except urllib.error.HTTPError as error:
            why = f"HTTP {error.code}"
            if error.code not in LATER:
                break
        except OSError as error:
            why = str(error)
        time.sleep(min(2.0**attempt, 16.0))
    address = url.partition("?")[0]
    return sys.exit(f"provision: cannot read {address}: {why}")


run = json.loads(os.environ["PROVISION_RUN"])
no_proxy = urllib.request.ProxyHandler({})
path = "/instance/service-accounts/default/token"
token = json.loads(fetch(METADATA + path, {"Metadata-Flavor": "Google"}, no_proxy))
bearer = {"Authorization": f"Bearer {token['access_token']}"}
work = tempfile.mkdtemp(prefix="provision-")
for name in ("device.pyz", "document.json"):
    uri, sha256 = run[name]["uri"], run[name]["sha256"]
    bucket, _, path = uri.removeprefix("gs://").partition("/")
    quoted = urllib.parse.quote(path, safe="")
    content = fetch(f"{STORAGE}/storage/v1/b/{bucket}/o/{quoted}?alt=media", bearer)
    if hashlib.sha256(content).hexdigest() != sha256:
        sys.exit(f"provision: {uri} does not have the announced sha256")
    with open(os.path.join(work, name), "wb") as file:
        file.write(content)
program = os.path.join(work, "device.pyz")
arguments = ["run", "--document", os.path.join(work, "document.json"), "--work", work]
services = ["--metadata", METADATA, "--storage", STORAGE]
os.execv(sys.executable, [sys.executable, "-I", program, *arguments, *services])
