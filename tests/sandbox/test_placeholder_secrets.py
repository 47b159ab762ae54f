"""A spec with a secret of Secret Manager is applied in the emulator, where nobody added it."""

from __future__ import annotations

import json

import pytest

from tests.commands.test_vertex_job import APPLY, SPEC, logs, reports
from tests.rig import Bench

pytest.importorskip("google.cloud.notebooks_v2")


@pytest.mark.long
def test_a_secret_that_nobody_added_has_a_placeholder(bench: Bench) -> None:
    bench.spec(
        f"{SPEC}    service_account: a@my-project.iam.gserviceaccount.com\n"
        "secrets: {TOKEN: {secret: projects/my-project/secrets/hf/versions/3, env: TOKEN}}\n"
        "verify: {command: [python, -c, \"import os; print(os.environ['TOKEN'][::-1])\"],"
        f" expect: {{stdout: {'sandbox-placeholder-hf'[::-1]}}}}}\n"
    )
    done = bench.run(*APPLY, TOKEN="a-token-of-the-caller")
    assert done.returncode == 0, done.stdout + done.stderr + logs(bench)
    report = reports(bench)["report"]
    statuses = {row["id"]: row["status"] for row in report["checks"]}
    assert (statuses["Y01"], statuses["V02"]) == ("pass", "pass")
    note = "Secret Manager: placeholders, except values that were added to the emulator: TOKEN"
    assert note in report["subject"]["simulated"]
    assert "a-token-of-the-caller" not in json.dumps(reports(bench))
