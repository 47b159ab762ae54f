"""Optional capabilities of drivers; a command that needs one refuses the other kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from provision.diagnostics import Diagnostic
from provision.effects.local import MonitorRequest
from provision.effects.system import Reader
from provision.errors import ProvisionError
from provision.facts import Facts
from provision.kinds.base import Refusal
from provision.plan import Action
from provision.spec import Spec
from provision.state import Ledger, State
from provision.targets.base import Journal, ProbeEvidence
from provision.targets.context import TargetContext


class RunningProgram(Protocol):
    """A program of the user that was started at a target."""

    def follow(self) -> int:
        """Show its output until it ends, and return its exit code, negative for a signal.

        Blocks until the program ends. A program on this machine may replace this process.
        """

    def stop(self) -> None:
        """End it and release what it runs on; nothing happens if it has ended. May block."""


@runtime_checkable
class RunsPrograms(Protocol):
    """Starts the user's programs (`provision run`)."""

    def start(
        self,
        context: TargetContext,
        argv: tuple[str, ...],
        journal: Journal,
        monitor: MonitorRequest | None,
    ) -> RunningProgram:
        """Start a program in the environment, with its variables, paths and secrets. May block.

        Args:
            context: the target with its lock.
            argv: the program and its arguments.
            journal: the ledger, for what has to be requested elsewhere first.
            monitor: the record of the run to write; None for no record.

        Raises:
            Refused: the environment is not whole, or the source of a secret is not set.
            ExternalError: the program cannot be started.
        """


@runtime_checkable
class Attachable(Protocol):
    """Verifies itself without us; its report is waited for later (`provision attach`)."""

    def attach(self, context: TargetContext, journal: Journal) -> ProbeEvidence:
        """Wait for the report of the recorded run. May block for hours.

        Raises:
            Refused: nothing is recorded.
            ExternalError: no acceptable report came.
        """


@dataclass(frozen=True, slots=True)
class InstanceAccess:
    """Ways to reach one instance: its state, the URL of JupyterLab ("" for none), command lines."""

    target: str
    instance: str
    state: str
    url: str
    ssh: str
    tunnel: str


@runtime_checkable
class Openable(Protocol):
    """Can be opened by a person (`provision open`)."""

    def describe_access(
        self, address: str, state: State, spec_path: Path, reader: Reader
    ) -> InstanceAccess:
        """Return the ways to reach the recorded resource of an address.

        Raises:
            Refused: none is recorded, or it is gone.
        """


@dataclass(frozen=True, slots=True)
class ImageVerification:
    """A verification on the image of a target, as it is planned.

    Attributes:
        action: Starts it, or continues the one that an interrupted run started.
        image: Name of the image; `machine` is the machine and its GPU.
        not_shown: What it cannot show of the target.
    """

    action: Action
    refusals: tuple[Refusal, ...]
    image: str
    machine: str
    not_shown: str


@runtime_checkable
class VerifiesImage(Protocol):
    """Can be verified on its image before it exists (`provision verify --before`)."""

    def plan_image_verification(
        self, context: TargetContext, ledger: Ledger, reader: Reader, nonce: str
    ) -> ImageVerification:
        """Return the verification that would be started with a nonce. May block on the network."""

    def verify_image(
        self, context: TargetContext, journal: Journal, planned: ImageVerification
    ) -> ProbeEvidence:
        """Run the probe on the image, and return its report. May block for hours.

        Whatever it started is deleted, however it ends.

        Raises:
            ExternalError: the probe did not run, or no acceptable report came.
        """

    def describe_image_verification(self, context: TargetContext, state: State) -> str:
        """Return the stored verification that applies to the spec and the lock of today.

        "" if there is none.
        """


def describe_edited_copy(cell: str) -> str:
    """Return the note that an edited copy of a rendered cell stays in its notebook."""
    return f"the edited copy of the cell {cell} is kept as a separate cell"


class RenderedContent(Protocol):
    """Content of rendered files, so far as commands show it."""

    @property
    def name(self) -> str:
        """Stem of the files' names."""

    @property
    def notebook_name(self) -> str:
        """File name of the notebook."""

    @property
    def payload_name(self) -> str:
        """File name of the payload, if it has its own file."""

    @property
    def nonce(self) -> str:
        """Nonce that its report answers."""

    @property
    def cell(self) -> str:
        """Text of the cell."""

    @property
    def sha256(self) -> str:
        """Digest of the payload."""

    @property
    def url(self) -> str:
        """The URL from which the cell fetches the payload's file; "" if it has none."""

    @property
    def github_addresses(self) -> tuple[str, ...]:
        """The URLs of that file in its repository on GitHub; () if it is not there."""

    @property
    def payload_object(self) -> str:
        """The object from which the cell fetches the payload; "" if it is elsewhere."""

    @property
    def report_places(self) -> tuple[str, str]:
        """The object, or the file on Google Drive, that the report is copied to; "" for neither."""


@dataclass(frozen=True, slots=True)
class Rendering:
    """Files of one target for a user to take elsewhere, and the action that writes them.

    Attributes:
        file_names: Names of all files.
        edited_copies: Cells of which the notebook keeps an edited copy.
        link: Opens the notebook once it is pushed; None if that is unknown.
        is_recorded: The state records the files, as a report can be imported for them.
    """

    action: Action
    content: RenderedContent
    refusals: tuple[Refusal, ...]
    file_names: tuple[str, ...]
    edited_copies: tuple[str, ...]
    link: str | None
    is_recorded: bool


@runtime_checkable
class Rendered(Protocol):
    """Is made by files that a user takes elsewhere (`provision render`)."""

    def render(
        self,
        context: TargetContext,
        folder: Path,
        ledger: Ledger,
        reader: Reader,
        *,
        payload_url: str = "",
    ) -> Rendering:
        """Return the files for a folder, as spec and lock make them; nothing is written.

        `payload_url` is where the payload will be fetched from; "" puts it into the cell.
        """


@dataclass(frozen=True, slots=True)
class ReportRequest:
    """Request that an imported report has to answer, as the state records it.

    Attributes:
        is_manual: A person runs the verification.
        bucket_uri: The object that it copies the report to, from where provision fetches it.
        drive_path: The file on its user's Google Drive that it copies the report to.
    """

    nonce: str
    lock_digest: str
    environment_digest: str
    is_manual: bool
    bucket_uri: str = ""
    drive_path: str = ""

    @property
    def arrival(self) -> str:
        """How the report of a notebook arrives without a download; "" if it does not."""
        if self.bucket_uri:
            return f"its report is fetched from {self.bucket_uri}"
        if self.drive_path:
            return (
                f"its report is on Google Drive, in {self.drive_path}: add it with `provision "
                "report add FILE`"
            )
        return ""


class FactDifference(NamedTuple):
    """One observed value that differs from the facts."""

    what: str
    listed: str
    found: str

    @property
    def line(self) -> str:
        """The difference in one line."""
        return f"{self.what} is {self.found}, expected {self.listed}"


class FactsComparison(NamedTuple):
    """Differences from the facts of a date, and the findings that only observed values cause."""

    as_of: str = ""
    differences: tuple[FactDifference, ...] = ()
    findings: tuple[Diagnostic, ...] = ()


RunRules = Callable[[Spec, Facts], Iterable[Diagnostic]]
"""Runs the rules on a spec and on what it is locked to, with the given facts."""


@runtime_checkable
class AcceptsReports(Protocol):
    """Is verified where provision cannot follow; people import its reports (`report add`)."""

    def is_run_by_user(self, context: TargetContext) -> bool:
        """Return whether a person runs the verification."""

    def report_request(self, address: str, state: State) -> ReportRequest | None:
        """Return the request that a report of this address answers; None if nothing was made."""

    def current_nonce(self, context: TargetContext, facts: Facts) -> str:
        """Return the nonce of the request as spec and lock make it now."""

    def report_expectations(self, context: TargetContext) -> dict[str, Any]:
        """Return the expectations that a report is judged again by.

        They are those of the device, except for the environment's prefix, which is known only
        there and decides nothing that is judged again.
        """

    def compare_with_facts(
        self,
        context: TargetContext,
        spec: Spec,
        facts: Facts,
        document: Mapping[str, Any],
        run_rules: RunRules,
    ) -> FactsComparison:
        """Return how a report differs from the facts, and what the rules say about it."""


@dataclass(frozen=True, slots=True)
class Orphan:
    """A resource that no state tracks, with the spec and target that its labels name.

    `delete` is the command line that deletes it.
    """

    name: str
    state: str
    created: str
    spec: str
    target: str
    delete: str


@dataclass(frozen=True, slots=True)
class OrphanList:
    """The orphans of all projects that answered, and the errors of the others by project."""

    orphans: tuple[Orphan, ...]
    failed: Mapping[str, ProvisionError]

    @property
    def exit_code(self) -> int:
        """1 when there are orphans, else the code of the first error, else 0."""
        if self.orphans:
            return 1
        return next((error.exit_code for error in self.failed.values()), 0)


@runtime_checkable
class ListsOrphans(Protocol):
    """Makes resources elsewhere that can outlive every record (`provision orphans`)."""

    def list_orphans(
        self, ledgers: Sequence[tuple[Spec, Ledger]], reader: Reader
    ) -> OrphanList | None:
        """Return the labelled resources that none of the ledgers tracks.

        None if no spec and no ledger names where to look. May block on the network.
        """
