"""Driver of Google Colab: only a notebook can set up an environment on a runtime."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from provision.adapters.public_files import read_public_file
from provision.effects.local import MakeFolder
from provision.effects.system import Reader
from provision.errors import Refused
from provision.facts import Facts, load_facts
from provision.kinds.base import Refusal
from provision.plan import Action, Intent, Operation
from provision.spec import Spec
from provision.state import Ledger, State
from provision.targets.base import (
    Driver,
    Journal,
    Pending,
    ProbeEvidence,
    VerifyOptions,
)
from provision.targets.capabilities import FactsComparison, Rendering, ReportRequest, RunRules
from provision.targets.colab.agent_config import build_agent_config
from provision.targets.colab.facts_comparison import compare_runtime_with_facts
from provision.targets.colab.file_names import get_colab_target
from provision.targets.colab.github_link import build_colab_link
from provision.targets.colab.locations import split_report_location
from provision.targets.colab.observation import (
    ColabObservation,
    FetchFile,
    observe_folder,
    observe_payload,
)
from provision.targets.colab.planning import PUSH_NOTE, plan_file_removals, plan_files
from provision.targets.colab.records import NotebookRecord, SessionRecord
from provision.targets.colab.verification import (
    plan_session_stops,
    stop_interrupted_session,
    verify_on_colab,
)
from provision.targets.context import Interpreter, TargetContext
from provision.targets.pinned_uv import read_pinned_uv
from provision.targets.stored_verdict import VerificationRecord
from provision.targets.summary import NotebookSummary, TargetCondition, TargetSummary

_SYSTEM, _VENV = Path("/usr"), Path("/content/.provision/env")
"""Prefixes on a runtime; the cell inserts the digest of its payload before `env`."""


@dataclass(frozen=True)
class ColabDriver(Driver[ColabObservation]):
    """Runtimes of Google Colab: files are written here, and their notebook does the rest."""

    facts: Callable[[], Facts] = load_facts
    fetch: FetchFile = read_public_file

    platform = "linux-x86_64"
    own_files = ("colab/sessions.json", "colab/sessions.json.lock")
    own_folders = ("colab",)

    def owns(self, part: str) -> bool:
        """Return whether a part is a notebook or a session."""
        return part in (NotebookRecord.part, SessionRecord.part)

    def observe(self, context: TargetContext, ledger: Ledger, reader: Reader) -> ColabObservation:
        """Return the files that exist next to the spec, and whether a payload apart is there.

        Nothing is requested from Colab.
        """
        folder = context.folder.parent
        observed = observe_folder(folder, context, self.facts(), ledger, reader)
        if observed.found_refusals:
            return observed
        return replace(observed, unreachable=observe_payload(observed, reader, self.fetch))

    def refusals(self, context: TargetContext, observed: ColabObservation) -> tuple[Refusal, ...]:  # noqa: ARG002
        """Return the fields that a runtime does not support."""
        return observed.found_refusals

    def plan(self, context: TargetContext, observed: ColabObservation) -> tuple[Action, ...]:
        """Return the one action: the notebook and its cell."""
        return (plan_files(context, observed),)

    def destroy(self, address: str, folder: Path, ledger: Ledger) -> tuple[Action, ...]:
        """Return the release of its sessions, and the removal of unchanged files."""
        return (
            *plan_session_stops(address, folder, ledger),
            *plan_file_removals(address, folder, ledger),
        )

    def recover(
        self,
        intent: Intent,
        journal: Journal,
        *,
        planned: bool = False,  # noqa: ARG002
        still_running: tuple[str, ...] = (),  # noqa: ARG002
    ) -> None:
        """Release the session that an interrupted run may have acquired."""
        if intent.part == SessionRecord.part:
            stop_interrupted_session(intent, journal)
        else:
            journal.close_intent(intent)

    def release_interrupted(self, intent: Intent, journal: Journal) -> None:
        """Release the session of an interrupted verification."""
        if intent.part == SessionRecord.part:
            stop_interrupted_session(intent, journal)

    def voids_verdict(self, action: Action, state: State) -> bool:
        """Return whether an action changes the request that the stored verdict answers."""
        stored = VerificationRecord.find(state, action.address)
        nonce = stored.nonce if stored is not None else ""
        is_answered = nonce and (action.record or {}).get("nonce") == nonce
        return action.operation is not Operation.KEEP and not is_answered

    def reason_to_verify(
        self, context: TargetContext, state: State, reader: Reader, *, changed: bool
    ) -> str:
        """Return why the stored verdict does not apply, as that of an earlier notebook."""
        stored = VerificationRecord.find(state, context.address)
        if stored is None or not stored.verdict:
            if get_colab_target(context).bucket is not None:
                return "waiting for its report, which is fetched from the bucket"
            if self.is_run_by_user(context):
                return "waiting for its report (`provision report add`)"
            return "it has not been verified yet"
        notebook = NotebookRecord.find(state, context.address)
        if changed or notebook is None or stored.nonce != notebook.nonce:
            verdict = f"the verdict from {stored.at[:10]} ({stored.verdict})"
            return f"{verdict} is from an earlier notebook"
        return super().reason_to_verify(context, state, reader, changed=changed)

    def verification_location(self, context: TargetContext) -> str:
        """Return where the cell runs."""
        return "in the notebook" if self.is_run_by_user(context) else "on a Colab machine"

    def require_verifiable(
        self,
        context: TargetContext,
        ledger: Ledger,
        reader: Reader,
        only: tuple[str, ...],
    ) -> None:
        """Check that provision itself can run the cell, with all of its checks."""
        if self.is_run_by_user(context):
            request = self.report_request(context.address, ledger.state)
            arrival = "download the report, and add it with `provision report add FILE`"
            if request is not None and request.bucket_uri:
                arrival = f"and run this command again: the report arrives in {request.bucket_uri}"
            raise Refused(
                f"{context.address} can only be verified in its notebook",
                why="provision cannot reach a runtime that is open in a browser",
                hint=f"open the notebook (`{context.command('apply')}` prints how), run all of "
                f"its cells, {arrival}",
            )
        super().require_verifiable(context, ledger, reader, only)

    def verify(
        self, context: TargetContext, journal: Journal, options: VerifyOptions
    ) -> ProbeEvidence | Pending:
        """Run the cell on a fresh machine; in a browser only a person can run it."""
        if self.is_run_by_user(context):
            journal.system.perform(MakeFolder(context.reports_folder, 0o700), journal.progress)
            return Pending()
        return verify_on_colab(self, context, self.facts(), journal, keep=options.keep)

    def condition(self, context: TargetContext, ledger: Ledger, reader: Reader) -> TargetCondition:
        """Return the condition of the files: "rendered" if they match spec and lock."""
        location = self.location(context.address, context.folder, ledger.state) or ""
        intent = ledger.find_interrupted(context.address)
        if intent is not None and intent.part == SessionRecord.part:
            session = intent.details["session"]
            text = (
                f"{session} may be running on Colab and costing money; `provision apply` or "
                "`provision destroy` stops it"
            )
            return TargetCondition(f"incomplete: {text}", location)
        observed = self.observe(context, ledger, reader)
        if observed.recorded is None:
            return TargetCondition("incomplete" if intent else "absent", location)
        actions = self.plan(context, observed)
        kept = all(action.operation is Operation.KEEP for action in actions)
        if observed.found_refusals or not kept:
            return TargetCondition("outdated", location)
        return TargetCondition("rendered", location)

    def location(self, address: str, folder: Path, state: State) -> str | None:
        """Return the path of the recorded notebook."""
        record = NotebookRecord.find(state, address)
        if record is None:
            return None
        return str(folder.parent / record.notebook) if record.notebook else ""

    def summarize(
        self,
        context: TargetContext,
        state: State,
        reader: Reader,
        actions: Sequence[Action],
    ) -> TargetSummary:
        """Return the notebook, and the session that was kept running."""
        record = NotebookRecord.find(state, context.address)
        session = SessionRecord.find(state, context.address)
        summary = None
        if record is not None:
            link = build_colab_link(context.folder.parent / record.notebook, reader)
            places = split_report_location(record.report)
            notes = (note for action in actions for note in action.notes)
            push = next((note for note in notes if note.startswith(PUSH_NOTE)), "")
            summary = NotebookSummary(record.notebook, record.nonce, link, *places, push)
        return TargetSummary(
            notebook=summary, session=session.session if session is not None else ""
        )

    def explain_use(self) -> str:
        """Return that people open its notebook on Colab."""
        return "open its notebook in Colab"

    def refuse_program(self, context: TargetContext) -> Refusal:
        """Return that programs run in the notebook."""
        return Refusal(
            (),
            f"{context.address} is a notebook, and programs can run only inside it",
            "run the program in a new cell below the cells that set up the environment",
        )

    def render(
        self,
        context: TargetContext,
        folder: Path,
        ledger: Ledger,
        reader: Reader,
        *,
        payload_url: str = "",
    ) -> Rendering:
        """Return the notebook and the cell for a folder."""
        observed = observe_folder(folder, context, self.facts(), ledger, reader, url=payload_url)
        files = observed.rendered
        (action,) = self.plan(context, observed)
        return Rendering(
            action,
            files,
            observed.found_refusals,
            tuple(files.merge_files({})),
            files.find_edited_copies(observed.existing_files),
            build_colab_link(folder / files.notebook_name, reader),
            is_recorded=self.is_run_by_user(context),
        )

    def is_run_by_user(self, context: TargetContext) -> bool:
        """Return whether a person runs the notebook in a browser."""
        return get_colab_target(context).via == "browser"

    def report_request(self, address: str, state: State) -> ReportRequest | None:
        """Return the request of the recorded notebook."""
        record = NotebookRecord.find(state, address)
        if record is None:
            return None
        return ReportRequest(
            record.nonce,
            record.lock,
            record.digest,
            record.via == "browser",
            *split_report_location(record.report),
        )

    def current_nonce(self, context: TargetContext, facts: Facts) -> str:
        """Return the nonce of the notebook for the current spec and lock."""
        return str(build_agent_config(context, facts, read_pinned_uv())["nonce"])

    def report_expectations(self, context: TargetContext) -> dict[str, Any]:
        """Return the expectations of the cell, without the prefix, which the runtime chooses."""
        expectations = context.expectations(PurePosixPath())
        return {**expectations, "shared": get_colab_target(context).isolation == "system"}

    def compare_with_facts(
        self,
        context: TargetContext,
        spec: Spec,
        facts: Facts,
        document: Mapping[str, Any],
        run_rules: RunRules,
    ) -> FactsComparison:
        """Return how a runtime differs from the facts about it."""
        return compare_runtime_with_facts(context, spec, facts, document, run_rules)

    def get_interpreter(self, context: TargetContext) -> Interpreter:
        """Return where programs run on the runtime; the paths are the runtime's."""
        if get_colab_target(context).isolation == "venv":
            return Interpreter(_VENV / "bin/python", _VENV, _VENV)
        return Interpreter(_SYSTEM / "bin/python3", _SYSTEM, _SYSTEM)
