"""What an instance, its labels and its objects in the bucket are called: by spec and target, so
that they are found again without any record.
"""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

from provision.kinds.models import WorkbenchTarget
from provision.targets.base import TargetContext

MANAGED_LABEL = "provision"
"""The label (value "1") that every instance of ours carries."""
LINEAGE_LABEL = "provision-lineage"
"""The label that tells which state made an instance: only what bears ours is taken for ours."""
_MOST = 63
"""Characters of a name and of a label's value (Compute Engine documentation, Naming resources;
Labels).
"""


class ResourceNames(NamedTuple):
    """The names of one place on Google Cloud; `folder` is the gs:// address below which the objects
    of its state lie, with a slash at its end.
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
        """Return the gs:// address below which the objects of one run lie, with a slash at its end."""  # noqa: E501
        return f"{self.folder}{nonce}/"


def build_resource_names(context: TargetContext, lineage: str) -> ResourceNames:
    """Return what the instance of a place is called, and where its objects lie; without a bucket
    the folder is "".

    The name is the same for everyone, so that a second one shows; the lineage of the state is in
    a label and in the folder, so that it is told whose it is.
    """
    target = context.spec.targets[context.target]
    assert isinstance(target, WorkbenchTarget)  # noqa: S101
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
    """Return the instance's name: readable, at most 63 characters, and another one for another
    project, spec or target.
    """
    mark = hashlib.sha256("\0".join((project, stem, target)).encode()).hexdigest()[:8]
    words = re.sub(r"[^a-z0-9]+", "-", f"provision-{stem}-{target}".lower())
    return f"{words[: _MOST - len(mark) - 1].strip('-')}-{mark}"


def to_label_value(text: str) -> str:
    """Return a text as the value of a label may be written: lower case letters, digits, _ and -, at
    most 63.
    """
    return re.sub(r"[^a-z0-9_-]+", "-", text.lower())[:_MOST]


def build_instance_kernel_name(context: TargetContext) -> str:
    """Return the name of the Jupyter kernel on the instance."""
    return re.sub(r"[^a-z0-9._-]+", "-", f"provision-{context.stem}.{context.target}".lower())


def build_labels(context: TargetContext, names: ResourceNames) -> dict[str, str]:
    """Return the labels that tell whose an instance is, and which lock it was made from."""
    digest = context.environment.digest.removeprefix("sha256:")[:12]
    return {
        MANAGED_LABEL: "1",
        "provision-spec": to_label_value(context.stem),
        "provision-target": to_label_value(context.target),
        LINEAGE_LABEL: names.lineage,
        "provision-lock": digest,
    }
