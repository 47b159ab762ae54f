"""Write what the sandbox checks request bodies by: extracts of the discovery documents that
google-api-python-client ships.
"""

from __future__ import annotations

import json
import sys

from provision.sandbox.discovery import (
    NOTEBOOKS,
    VERTEX,
    ApiDocument,
    extract_schema,
    find_discovery_document,
)


def main() -> int:
    """Write the extracts in src/provision/sandbox and return the exit code."""
    for document in (NOTEBOOKS, VERTEX):
        if not _write_extract(document):
            print(
                "google-api-python-client is not installed; it is one of the dev dependencies",
                file=sys.stderr,
            )
            return 2
    return 0


def _write_extract(document: ApiDocument) -> bool:
    installed = find_discovery_document(document)
    if installed is None:
        return False
    extract = extract_schema(json.loads(installed.read_bytes()), document)
    lines = [
        f' "{name}": {{\n'
        + ",\n".join(
            f"  {json.dumps(field)}: {json.dumps(about)}" for field, about in fields.items()
        )
        + "\n }"
        for name, fields in extract["messages"].items()
    ]
    source = (
        f"{document.file.removesuffix('.json')} discovery document of google-api-python-client; "
        "written by support/extract_api_schemas.py"
    )
    head = (
        f'{{"source": {json.dumps(source)},\n"revision": '
        f'{json.dumps(extract["revision"])},\n"masks": '
        f"{json.dumps(extract['masks'], indent=1)},\n"
    )
    document.extract_file.write_text(head + '"messages": {\n' + ",\n".join(lines) + "\n}}\n")
    return True


if __name__ == "__main__":
    raise SystemExit(main())
