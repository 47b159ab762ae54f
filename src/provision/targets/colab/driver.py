"""A Colab runtime as a kind of place: what is written for it here, since nobody but its notebook
can make an environment there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from provision.effects import (
    Effect,
    MakeFolder,
    Reader,
    RemoveFileIfUnmodified,
    RemoveTree,
    WriteFile,
)
from provision.errors import Refused
from provision.facts import Facts, load_facts
from provision.plan import Action, Intent, Operation
from provision.spec import Spec
from provision.state import Ledger, State
from provision.targets.base import (
    VERIFICATION_PART,
    Driver,
    Interpreter,
    Journal,
    Pending,
    ProbeEvidence,
    Refusal,
    TargetCondition,
    TargetContext,
    TargetSummary,
    VerifyOptions,
    declared_variables,
)
from provision.targets.capabilities import FactsComparison, Rendering, ReportRequest, RunRules
from provision.targets.colab.agent_config import build_agent_config
from provision.targets.colab.facts_comparison import compare_runtime_with_facts
from provision.targets.colab.file_names import (
    CELL_SUFFIX,
    NOTEBOOK_SUFFIX,
    PAYLOAD_SUFFIX,
    build_file_stem,
    get_colab_target,
)
from provision.targets.colab.github_link import build_colab_link
from provision.targets.colab.refusals import find_refusals
from provision.targets.colab.rendered_files import (
    MAX_CELL_BYTES,
    RenderedFiles,
    is_foreign_file,
    list_file_names,
    render_files,
)
from provision.targets.colab.sessions import NOTEBOOK_PART, SESSION_PART, plan_session_stops
from provision.targets.colab.shapes import find_shape
from provision.targets.colab.verification import stop_interrupted_session, verify_on_colab
from provision.targets.common_refusals import refuse_single_checks
from provision.targets.recorded_paths import resolve_own_folder
from provision.targets.workbench.programs import read_pinned_uv
from provision.verification import expectations_of

_LIMIT = 64 * 2**20
_MAX_NAMED = 5
"""Packages that a plan names one by one. Our choice."""
_SYSTEM, _VENV = Path("/usr"), Path("/content/.provision/env")
"""Where programs run there, so far as it is known here: the cell puts the digest of what it was
made from before `env`.
"""


@dataclass(frozen=True, slots=True)
class ColabObservation:
    """What was found in the folder of the files: those of ours, what is recorded of them, what is
    refused, and what would be written.
    """

    facts: Facts
    folder: Path
    existing_files: Mapping[str, bytes]
    recorded: Mapping[str, Any] | None
    found_refusals: tuple[Refusal, ...]
    rendered: RenderedFiles


class ColabDriver(Driver[ColabObservation]):
    """Runtimes of Google Colab: files are written here, and only their notebook can do the rest."""

    platform = "linux-x86_64"
    own_files = ("colab/sessions.json", "colab/sessions.json.lock")
    own_folders = ("colab",)

    def __init__(self, facts: Callable[[], Facts] = load_facts) -> None:
        self.facts = facts

    def owns(self, part: str) -> bool:
        """Return whether a part is a notebook or a session."""
        return part in (NOTEBOOK_PART, SESSION_PART)

    def observe(self, context: TargetContext, ledger: Ledger, reader: Reader) -> ColabObservation:
        """Return the files that exist next to the spec; Colab itself is not asked."""
        return self.observe_folder(context.folder.parent, context, ledger, reader)

    def observe_folder(
        self, folder: Path, context: TargetContext, ledger: Ledger, reader: Reader, *, url: str = ""
    ) -> ColabObservation:
        """Return the files that exist in a folder; with `url` the payload is a file of its own."""
        facts = self.facts()
        contents = {
            name: reader.read(folder / name, _LIMIT)
            for name in list_file_names(context, url)
            if reader.exists(folder / name)
        }
        foreign = tuple(
            name for name, content in contents.items() if is_foreign_file(name, content)
        )
        own = {name: content for name, content in contents.items() if name not in foreign}
        spec_file = get_spec_file_name(context, reader)
        files = render_files(context, facts, spec_file=spec_file, url=url)
        refusals = (*find_refusals(context, facts, foreign), *_size_refusals(context, files))
        recorded = ledger.state.resource(context.address, NOTEBOOK_PART)
        return ColabObservation(facts, folder, own, recorded, refusals, files)

    def refusals(self, context: TargetContext, observed: ColabObservation) -> tuple[Refusal, ...]:  # noqa: ARG002
        """Return what the spec asks for that a runtime cannot be asked for."""
        return observed.found_refusals

    def plan(self, context: TargetContext, observed: ColabObservation) -> tuple[Action, ...]:
        """Return the one action: the notebook and its cell."""
        files = observed.rendered.merge_files(observed.existing_files)
        moved = {
            name: content
            for name, content in files.items()
            if observed.existing_files.get(name) != content
        }
        effects: tuple[Effect, ...] = tuple(
            WriteFile(observed.folder / name, _content(name, content), None)
            for name, content in moved.items()
        )
        effects = (
            *effects,
            *(
                away
                for away in _file_removals(observed.recorded or {}, observed.folder)
                if away.path.name not in files
            ),
        )
        record = _record(context, observed.rendered)
        copies = (
            f"{observed.rendered.notebook_name}: {describe_kept_copy(name)}"
            for name in observed.rendered.find_edited_copies(observed.existing_files)
        )
        notes = (*_notes(context, observed.facts), *copies)

        def act(verb: Operation, because: str) -> tuple[Action, ...]:
            return (
                Action(
                    verb,
                    context.address,
                    NOTEBOOK_PART,
                    record["title"],
                    because,
                    effects,
                    record,
                    notes,
                ),
            )

        if observed.recorded is None and not observed.existing_files:
            return act(Operation.CREATE, "there is none yet")
        if effects:
            return act(
                Operation.CHANGE,
                f"{', '.join(moved) or 'its name'} "
                f"{'differ' if len(moved) > 1 else 'differs'} from what spec and lock make",
            )
        if observed.recorded == record:
            return act(Operation.KEEP, "the files are what spec and lock make")
        return act(Operation.CHANGE, "the files are what spec and lock make, and are recorded now")

    def destroy(self, address: str, folder: Path, ledger: Ledger) -> tuple[Action, ...]:
        """Return the actions that give back its machines and remove what was written for it; files
        that someone has changed since stay.
        """
        actions = list(plan_session_stops(address, folder, ledger))
        for part, record in ledger.state.parts(address).items():
            if part == SESSION_PART:
                continue
            effects: tuple[Effect, ...] = tuple(
                RemoveTree(resolve_own_folder(folder, path, address))
                for path in record.get("paths", ())
            )
            effects = (
                (*_file_removals(record, folder.parent), *effects)
                if part == NOTEBOOK_PART
                else effects
            )
            actions.append(
                Action(
                    Operation.DESTROY,
                    address,
                    part,
                    str(record.get("title", part)),
                    "destroy was asked for",
                    effects,
                )
            )
        return tuple(actions)

    def recover(
        self,
        intent: Intent,
        journal: Journal,
        *,
        planned: bool = False,  # noqa: ARG002
        still_running: tuple[str, ...] = (),  # noqa: ARG002
    ) -> None:
        """Release the session that an interrupted run may have acquired."""
        if intent.part == SESSION_PART:
            stop_interrupted_session(intent, journal)
        else:
            journal.close_intent(intent)

    def release_interrupted(self, intent: Intent, journal: Journal) -> None:
        """Release the session of an interrupted verification."""
        if intent.part == SESSION_PART:
            stop_interrupted_session(intent, journal)

    def voids_verdict(self, action: Action, state: State) -> bool:
        """Return whether an action changes the request that the stored verdict answers."""
        stored = state.resource(action.address, VERIFICATION_PART) or {}
        answered = stored.get("nonce") and (action.record or {}).get("nonce") == stored["nonce"]
        return action.operation is not Operation.KEEP and not answered

    def reason_to_verify(
        self, context: TargetContext, state: State, reader: Reader, *, changed: bool
    ) -> str:
        """Return why the stored verdict does not apply; one of an earlier notebook never does."""
        stored = state.resource(context.address, VERIFICATION_PART)
        if stored is None or not stored["verdict"]:
            if self.is_run_by_user(context):
                return "its report has not come home yet"
            return "it was not verified yet"
        notebook = state.resource(context.address, NOTEBOOK_PART) or {}
        if changed or stored.get("nonce") != notebook.get("nonce"):
            verdict = f"the verdict of {stored['at'][:10]} ({stored['verdict']})"
            return f"{verdict} is of an earlier notebook, and is void"
        return super().reason_to_verify(context, state, reader, changed=changed)

    def require_verifiable(
        self,
        context: TargetContext,
        ledger: Ledger,  # noqa: ARG002
        reader: Reader,  # noqa: ARG002
        only: tuple[str, ...],
    ) -> None:
        """Check that provision itself can run the cell, with all of its checks."""
        if self.is_run_by_user(context):
            raise Refused(
                f"{context.address} is verified in its notebook",
                why="provision reaches no runtime that a browser holds",
                hint=f"open the notebook (`provision apply {context.cli_arguments}` says how), "
                "run all of it, and file what it offers: provision report add FILE",
            )
        refuse_single_checks(context, only)

    def verify(
        self, context: TargetContext, journal: Journal, options: VerifyOptions
    ) -> ProbeEvidence | Pending:
        """Run the cell on a machine of its own; in a browser only a person can run it."""
        if self.is_run_by_user(context):
            journal.system.perform(MakeFolder(context.reports_folder, 0o700), journal.progress)
            return Pending()
        return verify_on_colab(self, context, self.facts(), journal, keep=options.keep)

    def condition(self, context: TargetContext, ledger: Ledger, reader: Reader) -> TargetCondition:
        """Return the condition of the files: "rendered" if spec and lock make the same."""
        location = self.location(context.address, context.folder, ledger.state) or ""
        intent = ledger.find_interrupted(context.address)
        if intent is not None and intent.part == SESSION_PART:
            session = intent.details["session"]
            text = f"{session} may be running at Colab, and cost; apply or destroy gives it back"
            return TargetCondition(f"half-made: {text}", location)
        observed = self.observe(context, ledger, reader)
        if observed.recorded is None:
            return TargetCondition("half-made" if intent else "absent", location)
        actions = self.plan(context, observed)
        kept = all(action.operation is Operation.KEEP for action in actions)
        if observed.found_refusals or not kept:
            return TargetCondition("outdated", location)
        return TargetCondition("rendered", location)

    def location(self, address: str, folder: Path, state: State) -> str | None:
        """Return the path of the recorded notebook."""
        record = state.resource(address, NOTEBOOK_PART)
        if record is None:
            return None
        for name in record.get("files", ()):
            if str(name).endswith(NOTEBOOK_SUFFIX):
                return str(folder.parent / name)
        return ""

    def summarize(
        self,
        context: TargetContext,
        state: State,
        actions: Sequence[Action],  # noqa: ARG002
    ) -> TargetSummary:
        """Return the record of the notebook, and the session that was kept running."""
        session = state.resource(context.address, SESSION_PART) or {}
        return TargetSummary(
            notebook=state.resource(context.address, NOTEBOOK_PART),
            session=str(session.get("session", "")),
        )

    def refuse_program(self, context: TargetContext) -> Refusal:
        """Return that programs run in the notebook."""
        return Refusal(
            (),
            f"{context.address} is a notebook, and programs run in it",
            "run it there: in a cell of its own below those that make the environment",
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
        observed = self.observe_folder(folder, context, ledger, reader, url=payload_url)
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
        """Return what the recorded notebook asks."""
        record = state.resource(address, NOTEBOOK_PART)
        if record is None:
            return None
        nonce, lock, digest = (str(record[key]) for key in ("nonce", "lock", "digest"))
        return ReportRequest(nonce, lock, digest, is_manual=record.get("via") == "browser")

    def current_nonce(self, context: TargetContext, facts: Facts) -> str:
        """Return the nonce of the notebook as spec and lock make it now."""
        return str(build_agent_config(context, facts, read_pinned_uv())["nonce"])

    def report_expectations(self, context: TargetContext) -> dict[str, Any]:
        """Return the expectations of the cell, without the prefix that only the runtime knows."""
        expectations = expectations_of(
            context.effective_spec,
            context.target,
            context.lock,
            context.environment,
            PurePosixPath(),
        )
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

    def get_environment_variables(
        self,
        context: TargetContext,
        caller: Mapping[str, str],  # noqa: ARG002
        *,
        partial: bool = False,  # noqa: ARG002
    ) -> dict[str, str]:
        """Return the declared variables; secrets are read on the runtime."""
        return declared_variables(context.spec)


def describe_kept_copy(name: str) -> str:
    """Say that an edited copy of a rendered cell stays in its notebook."""
    return f"the edited copy of the cell {name} stays, as a cell of its own"


def get_spec_file_name(context: TargetContext, reader: Reader) -> str:
    """Return how the file of a place's spec is called."""
    short = f"{context.stem}.yml"
    return short if reader.exists(context.folder.parent / short) else f"{context.stem}.yaml"


def _content(name: str, content: bytes) -> str | bytes:
    return content if name.endswith(PAYLOAD_SUFFIX) else content.decode()


def _size_refusals(context: TargetContext, made: RenderedFiles) -> Iterator[Refusal]:
    if len(made.cell) > MAX_CELL_BYTES:
        why = (
            f"the cell would have {len(made.cell) // 2**10} KiB, and {MAX_CELL_BYTES // 2**10} "
            "KiB are as much as one is given"
        )
        yield Refusal(
            ("targets", context.target),
            why,
            "`provision render SPEC --payload-url URL` writes what it carries into a file "
            "of its own",
        )


def _record(context: TargetContext, made: RenderedFiles) -> dict[str, Any]:
    return {
        "title": f"notebook {build_file_stem(context)}{NOTEBOOK_SUFFIX} and cell "
        f"{build_file_stem(context)}{CELL_SUFFIX}",
        "kind": "colab",
        "via": get_colab_target(context).via,
        "paths": [f"reports/{context.stem}.{context.target}"],
        # As they are without anything of other people: what `destroy` may remove.
        "files": {
            name: hashlib.sha256(content).hexdigest()
            for name, content in made.merge_files({}).items()
        },
        "nonce": made.nonce,
        "digest": context.environment.digest,
        "lock": context.lock.digest,
        "payload": made.sha256,
    }


def _file_removals(record: Mapping[str, Any], folder: Path) -> Iterator[RemoveFileIfUnmodified]:
    """Yield the removals of recorded files; raises Refused for a name that is not one of ours."""
    for name, sha256 in dict(record.get("files", {})).items():
        if Path(name).name != name or not name.endswith(
            (CELL_SUFFIX, NOTEBOOK_SUFFIX, PAYLOAD_SUFFIX)
        ):
            raise Refused(
                f"{name} is not a file that provision makes",
                why="the state names it",
                hint="look at the state file: provision did not write this into it",
            )
        yield RemoveFileIfUnmodified(folder / name, str(sha256))


def _notes(context: TargetContext, facts: Facts) -> Iterator[str]:
    target, gpu, chosen = (
        get_colab_target(context),
        context.spec.gpu,
        context.lock.targets[context.target],
    )
    runtime, shape = (
        facts.runtimes.get(target.runtime),
        find_shape(context.spec.gpu, target.shape, facts),
    )
    known = (
        f", Python {runtime.python}, torch {runtime.torch}, as of "
        f"{runtime.evidence.as_of}; the cell looks again"
        if runtime
        else ": not in the facts"
    )
    yield f"runtime: {target.runtime}{known}"
    if target.via == "colab-cli":
        (
            yield "run: on a machine taken for it through the colab program, always with the "
            "newest "
            "runtime, and given back at the end (unless --keep)"
        )
    units = (
        f", {shape.units_per_hour} compute units an hour as of {shape.evidence.as_of}"
        if shape and shape.units_per_hour
        else ""
    )
    tier = "" if shape is None or shape.free_tier else ", not in the free tier"
    (
        yield "machine: "
        f"{'no GPU' if gpu.is_none else gpu}{', high RAM' if shape and shape.shape == 'high' else ''}{units}{tier}"  # noqa: E501
    )
    if target.isolation == "venv":
        yield "packages: in an environment of its own, apart from the runtime's"
        return
    (
        yield f"packages: {len(chosen.kept)} kept, {len(chosen.changed)} changed, "
        f"{len(chosen.added)} added"
    )
    versions = context.lock.versions(context.environment)
    if chosen.changed:
        (
            yield "changed: "
            f"{_listed([f'{name} {there} to {versions.get(name, there)}' for name, there in sorted(chosen.changed.items())])}"  # noqa: E501
        )
    if chosen.added:
        yield f"added: {_listed(chosen.added)}"
    yield (
        f"restart needed: yes ({', '.join(chosen.restart)})"
        if chosen.restart
        else "restart needed: no"
    )


def _listed(words: Any) -> str:
    return ", ".join(words[:_MAX_NAMED]) + (
        f" and {len(words) - _MAX_NAMED} more" if len(words) > _MAX_NAMED else ""
    )
