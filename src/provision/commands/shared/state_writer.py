"""The one writer of a state, for one target at a time or for several at once."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from provision.plan import Intent
from provision.state import Ledger, State
from provision.state_store import LocalStore


class StateWriter:
    """Writes a ledger whose lock this process has. Every method may be called by several threads.

    A change is on disk when `change` returns. Changes that arrive while an earlier one is being
    written are written together: a state of 200 targets takes longer to write than to change.
    """

    def __init__(self, store: LocalStore, ledger: Ledger) -> None:
        self.store = store
        self.foreign_reason = ledger.foreign_reason
        self._state = ledger.state
        self._saved_serial = ledger.state.serial
        self._memory, self._disk = Lock(), Lock()

    @property
    def state(self) -> State:
        """The state with every change, the last of which may not be on disk yet."""
        return self._state

    @property
    def ledger(self) -> Ledger:
        """The state with the intents that are open."""
        return Ledger(self._state, self.store.read_intents(), self.foreign_reason)

    def change(self, change: Callable[[State], State]) -> None:
        """Save the state that `change` makes of the current one.

        Raises:
            StateError: another process has changed the state.
        """
        with self._memory:
            changed = self._state = change(self._state)
        with self._disk:
            if self._saved_serial < changed.serial:  # else written together with a later change
                self._write()

    def open_intent(self, intent: Intent) -> None:
        """Write an intent to the journal, in place of an open one with the same key."""
        with self._disk:
            self.store.open_intent(intent)

    def close_intent(self, intent: Intent) -> None:
        """Close an intent: the state contains its result, or nothing is left of it."""
        with self._disk:
            # A change that could not be written (a full disk) must not lose its intent as well.
            self._write()
            self.store.close_intent(intent)

    def _write(self) -> None:
        state = self._state
        if state.serial != self._saved_serial:
            self.store.save(state, expecting=self._saved_serial)
            self._saved_serial = state.serial
