"""Compare the regions of Vertex AI and its names of GPUs with the discovery document of aiplatform
v1 that google-api-python-client ships, a dev dependency.

`--check` only reports; without it, the regions in colab.yaml are written anew.

Not touched: every other row of colab.yaml, and the GPUs. A name that their table lacks is reported.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from provision.facts import Facts, load_facts
from provision.sandbox.discovery import VERTEX, find_discovery_document

TABLE = Path(__file__).parents[1] / "src/provision/facts/tables/colab.yaml"
NOT_REGIONS = ("us", "eu", "global")
_ROW = re.compile(
    r'(name: enterprise regions, .*?\s+value: ")[^"]*(",\s+source: ")[^"]*(")', re.DOTALL
)
_WIDTH = 112
_GPUS = "GoogleCloudAiplatformV1MachineSpec"


def regions_of(document: Mapping[str, Any]) -> list[str]:
    """Return the regions that have an endpoint."""
    return sorted(
        row["location"] for row in document["endpoints"] if row["location"] not in NOT_REGIONS
    )


def gpus_of(document: Mapping[str, Any]) -> list[str]:
    """Return the names of accelerators."""
    names: list[str] = document["schemas"][_GPUS]["properties"]["acceleratorType"]["enum"]
    return names


def differences(facts: Facts, regions: Sequence[str], gpus: Collection[str]) -> Iterator[str]:
    """Yield what the tables have otherwise."""
    listed = facts.conditions["enterprise regions"].value.split()
    for region in sorted(set(regions) - set(listed)):
        yield f"{region} has an endpoint, and is not in the table"
    for region in sorted(set(listed) - set(regions)):
        yield f"{region} is in the table, and has no endpoint"
    for name in facts.conditions["enterprise cards"].value.split():
        card = facts.card(name)
        if card is None or card.workbench not in gpus:
            yield f"{name}: {card and card.workbench} is not an accelerator of the API"


def rewrite(text: str, regions: Sequence[str], revision: str) -> str:
    """Return the table with these regions."""
    value = textwrap.fill(" ".join(regions), _WIDTH, break_on_hyphens=False).replace(
        "\n", "\n       "
    )
    source = f"aiplatform v1 discovery document, revision {revision} (endpoints, without us and eu)"
    changed, count = _ROW.subn(rf"\g<1>{value}\g<2>{source}\g<3>", text)
    if count != 1:
        raise SystemExit(f"{TABLE}: the row `enterprise regions` was not found")
    return changed


def main(arguments: Sequence[str]) -> int:
    """Return 0 if the tables agree or were written, 1 if they differ, 2 without the document."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="change nothing, exit 1 if stale")
    chosen = parser.parse_args(arguments)
    path = find_discovery_document(VERTEX)
    if path is None:
        print("google-api-python-client is not installed", file=sys.stderr)
        return 2
    document = json.loads(path.read_bytes())
    regions = regions_of(document)
    found = list(differences(load_facts(), regions, gpus_of(document)))
    print("\n".join(found) or f"{len(regions)} regions are as in revision {document['revision']}")
    if chosen.check:
        return 1 if found else 0
    TABLE.write_text(rewrite(TABLE.read_text(), regions, document["revision"]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
