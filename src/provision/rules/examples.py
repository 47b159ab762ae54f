"""Parts of specs for the examples of rules."""

from __future__ import annotations

CPU_HEAD = 'gpu: none\npython: "3.12"\n'
EMPTY_SPEC = f"{CPU_HEAD}packages: []\n"
COLAB_TARGETS = 'targets:\n  colab: {kind: colab, runtime: "2026.07"}\n'
EXAMPLE_IMAGE = "workbench-instances-2603-20261004-2157-rc0"
EXAMPLE_TARGET = (
    "kind: workbench, project: my-project, zones: [us-central1-a], bucket: "
    "gs://my-bucket/provision, nat: true, "
    "service_account: trainer@my-project.iam.gserviceaccount.com, max_lifetime: 8h"
)
"""The fields of a Workbench target without findings, for a YAML flow mapping."""
_FIELDS = {
    "kind": "workbench",
    "project": "my-project",
    "zones": "[us-central1-a]",
    "machine_type": "g2-standard-8",
    "image": EXAMPLE_IMAGE,
    "bucket": "gs://my-bucket/provision",
    "nat": "true",
    "service_account": "trainer@my-project.iam.gserviceaccount.com",
    "max_lifetime": "8h",
}


def example_spec(top: str = "gpu: L4\n", **fields: str | None) -> str:
    """Return a spec with one Workbench target.

    Args:
        top: the first lines of the spec.
        fields: YAML values of fields of the target; None leaves a field out.
    """
    values = {**_FIELDS, **fields}
    lines = [f"    {key}: {value}\n" for key, value in values.items() if value is not None]
    return f'{top}python: "3.12"\npackages: [torch]\ntargets:\n  wb:\n{"".join(lines)}'
