"""The notebook of an execution job on the image of an instance."""

from __future__ import annotations

from provision.facts import Facts
from provision.targets.colab.agent_config import NotebookRuntime, build_agent_config
from provision.targets.context import TargetContext
from provision.targets.execution_notebook import render_execution_notebook
from provision.targets.install_request import build_install_request, with_own_wheels
from provision.targets.pinned_uv import read_pinned_uv
from provision.targets.workbench.resource_names import get_workbench_target

BEFORE = "verify --before"
"""The command that starts such a job."""


def build_image_notebook(context: TargetContext, facts: Facts, nonce: str, folder: str) -> bytes:
    """Return the notebook of a run; its report names what it is about.

    Secrets are left out: only an instance fetches them.

    Args:
        context: the target with its lock.
        facts: the tables to look up.
        nonce: the request that its report answers.
        folder: gs:// address with a slash at its end, where it writes report and status.
    """
    document = build_agent_config(context, facts, read_pinned_uv(), nonce, NotebookRuntime("venv"))
    mirrors = get_workbench_target(context).mirrors
    request = build_install_request(context, "own", mirrors=mirrors, usable_files_only=True)
    document["install"] = with_own_wheels(request, context)
    expectations = document["expectations"]
    expectations["secrets"] = []
    expectations["target"]["name"] = f"{context.target} (on the same image)"
    return render_execution_notebook(context, document, folder, BEFORE)
