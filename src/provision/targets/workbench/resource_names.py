"""Names of instances, labels and objects, derived from spec and target alone."""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

from provision.kinds import WorkbenchTarget
from provision.targets.context import TargetContext

MANAGED_LABEL = "provision"
"""The label (value "1") that each of our instances has."""
LINEAGE_LABEL = "provision-lineage"
"""The label with the lineage of the state that created an instance."""
SPEC_LABEL, TARGET_LABEL = "provision-spec", "provision-target"
_MOST = 63
"""Characters of a name and of a label's value (Compute Engine documentation, Naming resources;
Labels).
"""


class ResourceNames(NamedTuple):
    """Names of one target on Google Cloud.

    `folder` is the gs:// address of the objects of its state, with a slash at its end.
    """

    project: str
    zones: tuple[str, ...]
    instance: str
    folder: str
    lineage: str

    def instance_resource_name(self, zone: str) -> str:
        """Return the full name of the instance in a zone."""
        return f"projects/{self.project}/locations/{zone}/instances/{self.instance}"

    def run_folder(self, nonce: str) -> str:
        """Return the gs:// address of the objects of one run, with a slash at its end."""
        return f"{self.folder}{nonce}/"


def get_workbench_target(context: TargetContext) -> WorkbenchTarget:
    """Return the target of a context; the registry selects drivers by kind."""
    target = context.spec.targets[context.target]
    assert isinstance(target, WorkbenchTarget)  # noqa: S101
    return target


def build_resource_names(context: TargetContext, lineage: str) -> ResourceNames:
    """Return the names of a target's instance and objects; without a bucket the folder is "".

    The name does not depend on the state, so that a second instance is detected. The lineage of the
    state, in a label and in the folder, distinguishes owners.
    """
    target = get_workbench_target(context)
    instance = build_instance_name(target.project, context.stem, context.target)
    bucket = (
        f"{target.bucket.rstrip('/')}/{instance}/{to_label_value(lineage)}/"
        if target.bucket
        else ""
    )
    return ResourceNames(
        target.project, tuple(target.zones), instance, bucket, to_label_value(lineage)
    )


def build_instance_name(project: str, stem: str, target: str) -> str:
    """Return the instance's name: readable, at most 63 characters, unique for its arguments."""
    mark = hashlib.sha256("\0".join((project, stem, target)).encode()).hexdigest()[:8]
    readable = re.sub(r"[^a-z0-9]+", "-", f"provision-{stem}-{target}".lower())
    return f"{readable[: _MOST - len(mark) - 1].strip('-')}-{mark}"


def to_label_value(text: str) -> str:
    """Return a label's value: at most 63 lower case letters, digits, _ and -."""
    return re.sub(r"[^a-z0-9_-]+", "-", text.lower())[:_MOST]


def build_instance_kernel_name(context: TargetContext) -> str:
    """Return the name of the Jupyter kernel on the instance."""
    return re.sub(r"[^a-z0-9._-]+", "-", f"provision-{context.stem}.{context.target}".lower())


def build_labels(context: TargetContext, names: ResourceNames) -> dict[str, str]:
    """Return the labels with the instance's owner and its lock."""
    digest = context.environment.digest.removeprefix("sha256:")[:12]
    return {**build_owner_labels(context, names.lineage), "provision-lock": digest}


def build_owner_labels(context: TargetContext, lineage: str) -> dict[str, str]:
    """Return the labels with the owner of a resource: spec, target and the state's lineage."""
    return {
        MANAGED_LABEL: "1",
        SPEC_LABEL: to_label_value(context.stem),
        TARGET_LABEL: to_label_value(context.target),
        LINEAGE_LABEL: lineage,
    }
