"""Parts of specs for the examples of rules."""

from __future__ import annotations

from provision.rules.rule import ResolvedSet

CPU_HEAD = 'gpu: none\npython: "3.12"\n'
EMPTY_SPEC = f"{CPU_HEAD}packages: []\n"
COLAB_TARGETS = 'targets:\n  colab: {kind: colab, runtime: "2026.07"}\n'
TRAINER_SET = ResolvedSet(
    {"torch": "2.13.0", "transformers": "5.0.0", "accelerate": "1.15.0"}, "3.11", "cpu"
)
"""A resolved set with which Trainer works."""
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


def colab_spec(
    packages: str = "[]", top: str = "gpu: none\n", target: str = 'runtime: "2026.07"'
) -> str:
    """Return a spec with one Colab target.

    Args:
        packages: the packages as a YAML list.
        top: the first lines of the spec.
        target: fields of the target, for a YAML flow mapping.
    """
    return (
        f'{top}python: "3.12"\npackages: {packages}\ntargets:\n  colab: {{kind: colab, {target}}}\n'
    )


def example_spec(top: str = "gpu: L4\n", packages: str = "[torch]", **fields: str | None) -> str:
    """Return a spec with one Workbench target.

    Args:
        top: the first lines of the spec.
        packages: the packages as a YAML list.
        fields: YAML values of fields of the target; None leaves a field out.
    """
    values = {**_FIELDS, **fields}
    lines = [f"    {key}: {value}\n" for key, value in values.items() if value is not None]
    return f'{top}python: "3.12"\npackages: {packages}\ntargets:\n  wb:\n{"".join(lines)}'


def example_job(head: str, gpu: str = "L4", **fields: str) -> str:
    """Return a spec with a target of kind vertex-job.

    Args:
        head: lines before the targets, without `gpu`, `python` and `packages`.
        gpu: the spec's `gpu`.
        fields: fields of the target by name, as YAML; they replace the example's own.
    """
    target = {
        "kind": "vertex-job",
        "project": "my-project",
        "regions": "[us-central1]",
        "bucket": '"gs://my-bucket/provision"',
        "image": f'"docker.io/library/python@sha256:{64 * "0"}"',
        **fields,
    }
    lines = "".join(f"    {name}: {value}\n" for name, value in target.items())
    packages = "" if gpu == "none" else "torch"
    return f'gpu: {gpu}\npython: "3.12"\npackages: [{packages}]\n{head}targets:\n  t:\n{lines}'
