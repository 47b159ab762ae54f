"""Performs actions: journal entry before, effects, state after; and recovers interrupted ones."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from provision.commands.shared.state_writer import StateWriter
from provision.effects.service import ServiceEffect
from provision.effects.system import ProgressCallback, System
from provision.errors import ExternalError, ProvisionError
from provision.kinds import Registry
from provision.plan import REQUESTED_AT, Action, Intent, Operation
from provision.state import Ledger, State
from provision.state_store import LocalStore
from provision.targets import AnyDriver, get_driver_of_parts

if TYPE_CHECKING:
    from provision.commands.shared.load import LoadedSpec


class Executor:
    """The ledger of one run under its lock, and the only code that changes it.

    It satisfies `provision.targets.base.Journal`. With an `address` it changes that target alone,
    and executors of other addresses may share its writer in other threads.
    """

    def __init__(
        self,
        writer: StateWriter,
        system: System,
        progress: ProgressCallback,
        registry: Registry,
        address: str = "",
    ) -> None:
        self.system = system
        self.progress = progress
        self.registry = registry
        self.address = address
        self._writer = writer

    @property
    def state(self) -> State:
        """The state as it is saved."""
        return self._writer.state

    @property
    def ledger(self) -> Ledger:
        """The state with the intents that are open; with an `address`, those of that target."""
        ledger = self._writer.ledger
        if not self.address:
            return ledger
        return replace(ledger, intents=ledger.find_all_interrupted(self.address))

    @property
    def folder(self) -> Path:
        """The folder of state, environments and reports."""
        return self._writer.store.folder

    def driver_of(self, intent: Intent) -> AnyDriver:
        """Return the driver of an interrupted action by its part; the spec may have changed."""
        return get_driver_of_parts((intent.part,), self.registry)

    def perform(self, driver: AnyDriver, action: Action, *, announce: bool = True) -> None:
        """Perform an action: intent before, effects, state after.

        A removal needs no intent: the state names what it removes until that is gone.
        """
        removal = action.operation is Operation.DESTROY
        recorded = self.state.resource(action.address, action.part)
        if not removal and not action.effects and recorded == action.record:
            return
        if announce:
            kept = f": {action.reason}" if action.operation is Operation.KEEP else ""
            self.progress(f"{action.operation} {action.title}{kept}")
        if removal:
            for effect in action.effects:
                self.system.perform(effect, self.progress)
            self.save(driver.state_after(action, self.state, self.system))
        else:
            self._perform_in_journal(driver, action)

    def _perform_in_journal(self, driver: AnyDriver, action: Action) -> None:
        intent = self._begin(action)
        try:
            for effect in action.effects:
                if isinstance(effect, ServiceEffect) and effect.is_billable:
                    requested = {**intent.details, REQUESTED_AT: self.system.now()}
                    intent = replace(intent, details=requested)
                    self._writer.open_intent(intent)
                self.system.perform(effect, self.progress)
        except ExternalError as error:
            if error.still_running == ():
                self.save(driver.state_after_failure(action, self.state))
                self.close_intent(intent)
            raise
        after = driver.state_after(action, self.state, self.system)
        for part in action.replaced:
            after = after.with_record(action.address, part, None)
        self.save(after)
        self.close_intent(intent)

    def save(self, state: State) -> None:
        """Save the state that follows the current one."""
        if state is self.state:
            return
        if self.address:
            self._writer.change(lambda current: current.with_target(self.address, state))
        else:
            self._writer.change(lambda _: state)

    def record(self, address: str, part: str, record: Mapping[str, Any] | None) -> None:
        """Save the state with one part recorded anew, or dropped."""
        self.save(self.state.with_record(address, part, record))

    def close_intent(self, intent: Intent) -> None:
        """Close an intent: the state contains its result, or nothing is left of it."""
        self._writer.close_intent(intent)

    def _begin(self, action: Action) -> Intent:
        """Save what the action replaces and open its intent."""
        plain = Intent(action.address, action.part, str(action.operation))
        intent = replace(action.intent or plain, began=self.system.now())
        state = self.state
        for part, record in action.replaced.items():
            state = state.with_record(action.address, part, record)
        self.save(state)
        self._writer.open_intent(intent)
        for earlier in self.ledger.intents:
            same_address = earlier.address == action.address and earlier.key != intent.key
            if same_address and not set(action.settles).isdisjoint(earlier.names):
                self.close_intent(earlier)
        return intent


@contextmanager
def open_executor(
    loaded: LoadedSpec, system: System, progress: ProgressCallback, *, lock_wait_s: float
) -> Iterator[Executor]:
    """Lock the state of a spec and yield its executor.

    Raises:
        StateError: the state is damaged, or locked by another run for `lock_wait_s` seconds.
    """
    store = LocalStore(loaded.folder, system)
    with store.exclusive(lock_wait_s, progress):
        writer = StateWriter(store, store.load_ledger())
        yield Executor(writer, system, progress, loaded.spec.registry)


def recover_interrupted(executor: Executor, planned: Container[str]) -> None:
    """Settle what earlier runs left open, before anything else.

    What they began on this machine, and the state does not contain, is removed. A resource
    elsewhere is recorded as soon as it is shown, so that it never runs unknown; at the addresses
    in `planned` the plan itself adopts it.
    """
    for intent in executor.ledger.intents:
        if not intent.names or intent.address not in planned:
            executor.driver_of(intent).recover(intent, executor)


def recover_after_error(error: ProvisionError, executor: Executor) -> None:
    """Settle what a failed action left, as the next run would, so that other targets can go on."""
    still_running = getattr(error, "still_running", None) or ()
    for intent in executor.ledger.intents:
        executor.driver_of(intent).recover(intent, executor, still_running=still_running)


def settle_planned_intents(executor: Executor, earlier: Ledger, failed: Container[str]) -> None:
    """Settle earlier intents whose targets were planned and applied since."""
    still_open = executor.ledger.intents
    for intent in earlier.intents:
        if intent in still_open and intent.address.rpartition("/")[2] not in failed:
            executor.driver_of(intent).recover(intent, executor, planned=True)
