"""Write what the sandbox checks request bodies by: an extract of the discovery document that
google-api-python-client ships.
"""

from __future__ import annotations

import json
import sys

from provision.sandbox.discovery import EXTRACT_FILE, extract_schema, find_discovery_document


def main() -> int:
    """Write src/provision/sandbox/notebooks.v2.json and return the exit code."""
    installed = find_discovery_document()
    if installed is None:
        print(
            "google-api-python-client is not installed; it is one of the dev dependencies",
            file=sys.stderr,
        )
        return 2
    extract = extract_schema(json.loads(installed.read_bytes()))
    lines = [
        f' "{name}": {{\n'
        + ",\n".join(
            f"  {json.dumps(field)}: {json.dumps(about)}" for field, about in fields.items()
        )
        + "\n }"
        for name, fields in extract["messages"].items()
    ]
    source = (
        "notebooks.v2 discovery document of google-api-python-client; written by "
        "support/extract_notebooks_surface.py"
    )
    head = (
        f'{{"source": {json.dumps(source)},\n"revision": '
        f'{json.dumps(extract["revision"])},\n"masks": '
        f"{json.dumps(extract['masks'], indent=1)},\n"
    )
    EXTRACT_FILE.write_text(head + '"messages": {\n' + ",\n".join(lines) + "\n}}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
