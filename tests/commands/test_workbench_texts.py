"""Every error text of Google Cloud that is known: the message, the exit code, what is left behind
and the next command.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from provision.adapters import RealSystem
from provision.sandbox.store import Store
from provision.state_store import LocalStore
from tests.rig import MINOR, Bench

pytest.importorskip("google.cloud.notebooks_v2")

TEXTS: dict[str, dict[str, Any]] = yaml.load(
    Path(__file__).with_name("workbench_texts.yaml").read_text(), yaml.CSafeLoader
)
TOLD = ("what", "why", "next", "more", "left", "unless")
SPEC = f"""\
gpu: none
python: "{MINOR}"
packages: [alpha]
training: {{{{framework: none}}}}
targets:
  wb:
    kind: workbench
    project: my-project
    zones: [us-central1-a, us-central1-b]
    image: workbench-instances-2603-20261004-2157-rc0
    bucket: gs://my-bucket/p
    service_account: trainer@my-project.iam.gserviceaccount.com
    max_lifetime: 8h
    {{more}}
"""


def left(bench: Bench) -> set[str]:
    """The instances that are there, by the sandbox's own store."""
    return set(Store(bench.folder / ".provision/sandbox").snapshot()["instances"])


def known(bench: Bench) -> set[str]:
    """The instances that the state or the journal names."""
    ledger = LocalStore(bench.folder / ".provision/sandbox/state", RealSystem()).load_ledger()
    held = [record for record in ledger.state.resources.values() if record.get("instance")]
    names = {
        f"projects/{one['project']}/locations/{one['zone']}/instances/{one['instance']}"
        for one in held
    }
    return names | {name for intent in ledger.intents for name in intent.names}


@pytest.mark.long(after=2)
@pytest.mark.parametrize("name", TEXTS)
def test_a_text_of_google_cloud(bench: Bench, name: str) -> None:
    row = TEXTS[name]
    bench.spec(SPEC.format(more=row.get("more", "nat: true")))
    (bench.folder / "error.json").write_text(
        json.dumps({key: value for key, value in row.items() if key not in TOLD})
    )
    done = bench.run("apply", "spec.yaml", "--sandbox", "--yes", "--fault", "error:error.json")
    assert done.returncode == 2, done.stderr
    _, found, message = done.stderr.rpartition("error: ")
    assert found
    what, _, rest = message.partition("\n  why: ")
    why, _, following = rest.partition("\n  help: ")

    assert row["what"] in what
    assert row.get("why", "") in why
    assert row["next"] in following
    assert " ".join(row["message"].split()) in " ".join(why.split())
    assert row.get("unless", "Traceback") not in done.stderr
    assert len(left(bench)) == row.get("left", 0)
    assert left(bench) <= known(bench)
    assert ("nothing was left running" in following) == (
        row["at"] in ("create", "operation") and not row.get("left")
    )
