"""The notebook that an execution job runs: it makes the environment and writes its report."""

from __future__ import annotations

from typing import Any

import provision
from provision.facts import Facts
from provision.targets.colab import cell, notebook
from provision.targets.colab.agent_config import (
    NotebookRuntime,
    build_agent_config,
    encode_config,
)
from provision.targets.colab_enterprise.resource_names import get_enterprise_target
from provision.targets.context import TargetContext
from provision.targets.workbench.agent_config import read_pinned_uv

_METADATA = {
    "kernelspec": {"display_name": "Python 3", "name": "python3"},
    "language_info": {"name": "python"},
}


def build_execution_notebook(
    context: TargetContext, facts: Facts, nonce: str, folder: str
) -> bytes:
    """Return the notebook of a run.

    Args:
        context: the target with its lock.
        facts: the tables to look up.
        nonce: the request that its report answers.
        folder: gs:// address with a slash at its end, where it writes report and status.
    """
    runtime = NotebookRuntime(get_enterprise_target(context).isolation)
    document = build_agent_config(context, facts, read_pinned_uv(), nonce, runtime)
    sources = context.sandbox_sources
    document["expectations"]["simulated"] = list(sources.simulated) if sources else []
    payload = cell.build_payload(encode_config(document), cell.build_payload_members())
    about: dict[str, Any] = {
        "what": f"environment {context.spec.name}",
        "lock": context.lock.digest,
        "nonce": nonce,
        "made_by": f"provision {provision.__version__}",
        "make_again": context.command("apply"),
        "payload_sha256": cell.digest_payload(payload),
    }
    text = cell.render_cell(about, cell.encode_payload(payload))
    job = {"nonce": nonce, "folder": folder, "cell": text.split("\n")}
    program = cell.fill_template(cell.read_template("job"), job)
    title = f"Environment {notebook.format_code(context.spec.name)}"
    introduction = "The cell makes the locked environment, verifies it, and stores its report."
    description = notebook.format_markdown({"lock": context.lock.digest}, title, introduction)
    texts = {notebook.ENVIRONMENT_CELL: program}
    return notebook.dumps(notebook.build_notebook(_METADATA, description, texts)).encode()
