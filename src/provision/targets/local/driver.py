"""Local environments, made by uv or by conda and uv: next to the spec, complete or absent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from provision.effects.local import (
    InstallPackages,
    MonitorRequest,
    RemoveTree,
)
from provision.effects.system import Reader, System
from provision.errors import Refused
from provision.kinds.base import Refusal
from provision.plan import Action, Intent, Operation
from provision.spec import Spec
from provision.state import Ledger, State, resolve_own_folder
from provision.targets.base import (
    Driver,
    Journal,
    ProbeEvidence,
    VerifyOptions,
)
from provision.targets.context import Interpreter, TargetContext, declared_variables
from provision.targets.local.code import ABSENT, plan_code, plan_code_removal
from provision.targets.local.conda import (
    build_activation_command,
    find_conda_refusals,
    plan_conda_link,
    uses_conda,
)
from provision.targets.local.observation import (
    LocalObservation,
    find_machine_refusals,
    find_spec_refusals,
    join_limited,
    observe_environment,
)
from provision.targets.local.planning import (
    plan_environment,
    plan_kernel,
    plan_python,
    plan_removal,
)
from provision.targets.local.probe_run import run_probe
from provision.targets.local.records import (
    CodeRecord,
    CondaLinkRecord,
    EnvironmentRecord,
    KernelRecord,
    environment_path,
    stable_path,
)
from provision.targets.stored_verdict import VerificationRecord
from provision.targets.summary import TargetCondition, TargetSummary

_SHARED_FILES = " (packages copied from the earlier environment were already compared there)"


@dataclass(frozen=True, slots=True)
class LocalProgram:
    """A program that has the caller's terminal for as long as it is followed."""

    system: System
    argv: tuple[str, ...]
    variables: Mapping[str, str]
    monitor: MonitorRequest | None
    prefix: Path
    folder: Path | None

    def follow(self) -> int:
        """Run the program to its end; without a monitor this process becomes the program."""
        return self.system.run(
            self.argv, self.variables, self.monitor, prefix=self.prefix, folder=self.folder
        )

    def stop(self) -> None:
        """Do nothing: the program ends with the process that follows it."""


class LocalDriver(Driver[LocalObservation]):
    """Environments on this machine."""

    own_folders = ("code",)

    def owns(self, part: str) -> bool:  # noqa: ARG002
        """Return True: every part that no other kind claims is local."""
        return True

    def observe(self, context: TargetContext, ledger: Ledger, reader: Reader) -> LocalObservation:
        """Return what exists of the environment on this machine."""
        return observe_environment(context, ledger, reader)

    def refusals(self, context: TargetContext, observed: LocalObservation) -> tuple[Refusal, ...]:
        """Return what the spec declares that this machine cannot do."""
        refusals = [
            *find_spec_refusals(context.spec, context.target, context.platform),
            *find_machine_refusals(context, observed),
        ]
        if uses_conda(context):
            refusals += find_conda_refusals(context, observed.conda, is_foreign=observed.is_foreign)
        return tuple(refusals)

    def plan(self, context: TargetContext, observed: LocalObservation) -> tuple[Action, ...]:
        """Return the actions: interpreter (if none fits), environment, code, conda name, kernel."""
        actions = (
            plan_python(context, observed),
            plan_environment(context, observed),
            plan_code(context, observed.code_problem, observed.recorded_code),
            plan_conda_link(context, observed.conda_link, observed.recorded_conda_link),
            plan_kernel(context, observed),
        )
        return tuple(action for action in actions if action is not None)

    def destroy(self, address: str, folder: Path, ledger: Ledger) -> tuple[Action, ...]:
        """Return the removal of the environments, links and kernel of an address."""
        parts = ledger.state.parts(address)
        interrupted = ledger.find_interrupted(address)
        actions = []
        if interrupted is not None and interrupted.part == CondaLinkRecord.part:
            parts.setdefault(interrupted.part, interrupted.details)
        elif interrupted is not None:
            removals = tuple(
                RemoveTree(resolve_own_folder(folder, path, address)) for path in interrupted.paths
            )
            title, reason = "incomplete environment", "left by an interrupted run"
            part = interrupted.part
            actions.append(Action(Operation.DESTROY, address, part, title, reason, removals))
        # The name comes last, when nothing exists that it leads to.
        for part in sorted(parts, key=lambda part: part == CondaLinkRecord.part):
            if part == CodeRecord.part:
                actions.append(plan_code_removal(address, parts[part], folder))
                continue
            unverified = part == EnvironmentRecord.part and VerificationRecord.part not in parts
            actions.append(
                plan_removal(address, part, parts[part], folder, with_reports=unverified)
            )
        return tuple(actions)

    def state_after(self, action: Action, state: State, reader: Reader) -> State:
        """Return the state once an action is done; new packages void the stored verdict."""
        after = super().state_after(action, state, reader)
        stored = VerificationRecord.find(state, action.address)
        if stored is None or not _installs_packages(action):
            return after
        void = replace(stored, verdict="")
        return after.with_record(action.address, void.part, void.to_json())

    def recover(
        self,
        intent: Intent,
        journal: Journal,
        *,
        planned: bool = False,
        still_running: tuple[str, ...] = (),  # noqa: ARG002
    ) -> None:
        """Remove what an interrupted run began in our folder and the state does not record."""
        if not planned and intent.part == CondaLinkRecord.part and intent.details:
            # The link is in a folder of conda: it is recorded, whether it was made or not.
            journal.record(intent.address, intent.part, dict(intent.details))
        elif not planned:
            _remove_half_made(intent, journal)
        journal.close_intent(intent)

    def reason_for_missing_report(
        self,
        context: TargetContext,
        stored: VerificationRecord,
        state: State,  # noqa: ARG002
        reader: Reader,
    ) -> str:
        """Return that the file of the stored report is gone."""
        if reader.exists(context.folder / stored.report):
            return ""
        return "its report is missing"

    def require_verifiable(
        self,
        context: TargetContext,
        ledger: Ledger,
        reader: Reader,
        only: tuple[str, ...],  # noqa: ARG002
    ) -> None:
        """Check that the environment is complete; a Python that went away is the usual cause."""
        observed = self.observe(context, ledger, reader)
        _require_code(context, observed)
        if observed.is_complete:
            return
        interpreter = self.get_interpreter(context)
        reason = f"there is no complete environment in {interpreter.prefix}"
        if reader.exists(interpreter.prefix) and not reader.exists(interpreter.python):
            missing = "is missing, or is a link to a Python that was removed or upgraded"
            reason = f"{interpreter.python} {missing}"
        raise Refused(
            f"the environment for {context.address} is missing or incomplete",
            why=reason,
            hint=context.command("apply"),
        )

    def verify(
        self, context: TargetContext, journal: Journal, options: VerifyOptions
    ) -> ProbeEvidence:
        """Run the probe in the environment."""
        interpreter, caller = self.get_interpreter(context), journal.system.environment()
        variables = {
            **self.get_environment_variables(context, caller, partial=True),
            **_activation_variables(interpreter.prefix, caller),
        }
        return run_probe(context, interpreter, variables, journal, options)

    def start(
        self,
        context: TargetContext,
        argv: tuple[str, ...],
        journal: Journal,
        monitor: MonitorRequest | None,
    ) -> LocalProgram:
        """Return a program of the activated environment; it runs while it is followed."""
        system, prefix = journal.system, self.get_interpreter(context).prefix
        observed = self.observe(context, journal.ledger, system)
        _require_code(context, observed)
        if not observed.is_complete:
            raise Refused(
                f"the environment for {context.address} is missing or incomplete",
                why=f"there is no complete environment in {prefix}",
                hint=f"create it with `{context.command('apply')}`",
            )
        inherited = {
            name: value for name, value in system.environment().items() if name != "PYTHONHOME"
        }
        variables = {
            **inherited,
            **self.get_environment_variables(context, inherited),
            **_activation_variables(prefix, inherited),
        }
        if observed.differences:
            journal.progress(
                f"the environment was changed by hand ({join_limited(observed.differences)}); "
                f"restore it with `{context.command('apply')}`"
            )
        return LocalProgram(system, argv, variables, monitor, prefix, _code_folder(context))

    def condition(self, context: TargetContext, ledger: Ledger, reader: Reader) -> TargetCondition:
        """Return the condition of the environment, with its packages and files compared."""
        observed = self.observe(context, ledger, reader)
        location = str(stable_path(context))
        if observed.is_complete and observed.differences:
            changes = join_limited(observed.differences)
            drift = f"the environment was changed after it was created: {changes}"
            return TargetCondition("changed by hand", location, drift)
        if observed.is_complete and observed.code_problem == ABSENT:
            return TargetCondition("outdated", location)
        if observed.is_complete:
            return TargetCondition("current", location)
        if observed.exists or observed.interrupted:
            return TargetCondition("incomplete", location)
        if observed.recorded is None:
            return TargetCondition("absent", location)
        if reader.exists(stable_path(context)):
            return TargetCondition("outdated", location)
        return TargetCondition("gone", location, "the environment no longer exists")

    def location(self, address: str, folder: Path, state: State) -> str | None:
        """Return the stable path of the recorded environment."""
        record = EnvironmentRecord.find(state, address)
        return str(folder / record.paths[-1]) if record is not None else None

    def summarize(
        self,
        context: TargetContext,
        state: State,
        reader: Reader,  # noqa: ARG002
        actions: Sequence[Action],
    ) -> TargetSummary:
        """Return the kernel, the activation command and how files were compared."""
        kernel = KernelRecord.find(state, context.address)
        return TargetSummary(
            kernel=kernel.name if kernel is not None else None,
            activation=build_activation_command(CondaLinkRecord.find(state, context.address)),
            file_comparison="" if uses_conda(context) else _describe_comparison(actions),
        )

    def get_interpreter(self, context: TargetContext) -> Interpreter:
        """Return the environment's Python."""
        prefix = environment_path(context)
        return Interpreter(prefix / "bin/python", prefix, stable_path(context))

    def get_environment_variables(
        self, context: TargetContext, caller: Mapping[str, str], *, partial: bool = False
    ) -> dict[str, str]:
        """Return `env`, PROVISION_PATH_* and the secrets, from the caller's variables."""
        secrets = _read_secrets(context.spec, caller, partial=partial)
        return {**declared_variables(context.spec, _code_folder(context)), **secrets}


def _require_code(context: TargetContext, observed: LocalObservation) -> None:
    """Raise Refused if the code cannot be read, or is not unpacked."""
    code = context.code
    if code is None or not code.git:
        return
    if code.problems or observed.code_problem == ABSENT:
        why = "; ".join(problem.why for problem in code.problems)
        raise Refused(
            f"the code for {context.address} is missing",
            why=why or f"{code.folder} does not exist",
            hint=f"get it with `{context.command('apply')}`",
        )


def _code_folder(context: TargetContext) -> Path | None:
    return None if context.code is None else context.code.folder


def _installs_packages(action: Action) -> bool:
    return any(isinstance(effect, InstallPackages) for effect in action.effects)


def _remove_half_made(intent: Intent, journal: Journal) -> None:
    paths = {path: RemoveTree(journal.folder / path) for path in intent.paths}
    journal.ledger.refuse_foreign_removals(paths.values(), journal.folder)
    records = journal.state.resources.values()
    recorded = {path for record in records for path in record.get("paths", ())}
    for path, removal in paths.items():
        if path not in recorded and path.startswith("envs/") and ".." not in Path(path).parts:
            journal.system.perform(removal, journal.progress)


def _describe_comparison(actions: Sequence[Action]) -> str:
    """Return with what the files of an environment that uv makes were compared."""
    for action in actions:
        for effect in action.effects:
            if isinstance(effect, InstallPackages):
                shared = "" if effect.earlier is None else _SHARED_FILES
                return (
                    "downloads against the lock, and installed files against their RECORDs, by "
                    f"sha256{shared}"
                )
        if action.part == EnvironmentRecord.part and action.operation is Operation.KEEP:
            return action.reason
    return ""


def _read_secrets(spec: Spec, caller: Mapping[str, str], *, partial: bool) -> dict[str, str]:
    values = {}
    for name, reference in spec.secrets.items():
        if reference.env and caller.get(reference.env):
            values[name] = caller[reference.env]
        elif not partial:
            raise Refused(
                f"the secret {name} has no value",
                why=f"the variable {reference.env} is not set or is empty",
                hint=f"export {reference.env}=... and run the command again",
            )
    return values


def _activation_variables(prefix: Path, caller: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that activate an environment: its programs come first on the PATH."""
    path = caller.get("PATH", "/usr/bin:/bin")
    return {"VIRTUAL_ENV": str(prefix), "PATH": f"{prefix / 'bin'}:{path}"}
