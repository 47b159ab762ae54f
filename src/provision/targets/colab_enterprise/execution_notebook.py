"""The notebook that an execution job runs on a runtime of a template."""

from __future__ import annotations

from provision.facts import Facts
from provision.targets.colab.agent_config import NotebookRuntime, build_agent_config
from provision.targets.colab_enterprise.resource_names import get_enterprise_target
from provision.targets.context import TargetContext
from provision.targets.execution_notebook import render_execution_notebook
from provision.targets.pinned_uv import read_pinned_uv


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
    return render_execution_notebook(context, document, folder, "apply")
