"""The notebook of an execution job: sets up and verifies the environment, stores the report."""

from __future__ import annotations

import sys
from typing import Any

import provision
from provision.targets.colab import cell, notebook
from provision.targets.colab.agent_config import encode_config
from provision.targets.colab.payload import build_context_payload, digest_payload, encode_payload
from provision.targets.context import TargetContext

_METADATA = {
    "kernelspec": {"display_name": "Python 3", "name": "python3"},
    "language_info": {"name": "python"},
}


def render_execution_notebook(
    context: TargetContext, document: dict[str, Any], folder: str, verb: str
) -> bytes:
    """Return the notebook of a run.

    Args:
        context: the target with its lock.
        document: the document of its cell, with the nonce that its report answers. In the sandbox,
            the notebook runs on this machine as this user, which has neither the GPU nor the
            folders of a runtime: there they are not expected.
        folder: gs:// address with a slash at its end, where it writes report and status.
        verb: the command that starts such a run.
    """
    nonce, sources = document["nonce"], context.sandbox_sources
    expectations = {**document["expectations"], "simulated": []}
    document = {**document, "expectations": expectations}
    if sources is not None:
        expectations |= {"simulated": list(sources.simulated), "paths": {}}
        document |= {"gpu": None, "paths": {}}
    payload = build_context_payload(encode_config(document), context)
    about: dict[str, Any] = {
        "what": f"environment {context.spec.name}",
        "lock": context.lock.digest,
        "nonce": nonce,
        "made_by": f"provision {provision.__version__}",
        "make_again": context.command(verb),
        "payload_sha256": digest_payload(payload),
    }
    text = cell.render_cell(about, encode_payload(payload, max_bytes=sys.maxsize))
    job = {"nonce": nonce, "folder": folder, "cell": text.split("\n")}
    program = cell.fill_template(cell.read_template("job"), job)
    title = f"Environment {notebook.format_code(context.spec.name)}"
    introduction = "The cell creates the locked environment, verifies it, and stores the report."
    description = notebook.format_markdown({"lock": context.lock.digest}, title, introduction)
    texts = {notebook.ENVIRONMENT_CELL: program}
    return notebook.dumps(notebook.build_notebook(_METADATA, description, texts)).encode()
