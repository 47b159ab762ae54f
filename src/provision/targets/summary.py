"""Reports of drivers about a target: its condition, and the facts after `apply`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TargetCondition:
    """Condition of a target for `status`.

    Attributes:
        condition: One of the words of `status`, such as "current", "incomplete" or "outdated".
        location: A path, or "INSTANCE in ZONE"; "" for nothing.
        drift: Why the stored verdict does not apply to what was observed; "" when it does.
    """

    condition: str
    location: str
    drift: str = ""


@dataclass(frozen=True, slots=True)
class InstanceSummary:
    """An instance that a target has: its name and zone."""

    name: str
    zone: str


@dataclass(frozen=True, slots=True)
class NotebookSummary:
    """A notebook that a target has: its file next to the spec, and its nonce.

    `link` opens it once it is pushed; None if that is unknown. The cell copies its report to the
    object `report_uri`, or to `report_path` on Google Drive; "" for neither. `payload_note` is why
    the cell cannot fetch its payload yet.
    """

    file: str
    nonce: str
    link: str | None
    report_uri: str = ""
    report_path: str = ""
    payload_note: str = ""


@dataclass(frozen=True, slots=True)
class ResourceSummary:
    """Another resource that a target has, and what a person does with it.

    `kind` is a word for it, such as "runtime template"; `location` is its region.
    """

    kind: str
    name: str
    location: str
    next_step: str


@dataclass(frozen=True, slots=True)
class TargetSummary:
    """Facts about an applied target, for the end of `apply`; None and "" for what a kind lacks.

    Attributes:
        kernel: Name of its Jupyter kernel.
        activation: The command by which the user's conda activates it.
        file_comparison: With what this run compared its files.
        session: A session that keeps running and costs money.
    """

    kernel: str | None = None
    activation: str = ""
    file_comparison: str = ""
    instance: InstanceSummary | None = None
    notebook: NotebookSummary | None = None
    session: str = ""
    resource: ResourceSummary | None = None
