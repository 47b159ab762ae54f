"""One call for reads that several threads request at the same time."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from threading import Event, Lock
from typing import Any, TypeVar

from provision.adapters.google.errors import CloudError

T = TypeVar("T")

_WINDOW_S = 0.1
"""Seconds that a read waits for others to join it: little next to a call, and enough for targets
that were waiting for the same thing. Our choice."""


class _Batch:
    def __init__(self) -> None:
        self.items: set[str] = set()
        self.done = Event()
        self.result: Any = None
        self.error: BaseException | None = None


class SharedCalls:
    """Joins reads: a result is never older than the request for it.

    A read joins a call that has not begun yet, never one that is under way.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting: dict[Hashable, _Batch] = {}

    def read(self, key: Hashable, call: Callable[[], T]) -> T:
        """Return the result of `call`, which is the same for all reads with this key."""
        return self.read_items(key, "", lambda _: call())

    def read_items(self, key: Hashable, item: str, call: Callable[[frozenset[str]], T]) -> T:
        """Return the result of `call` for the items of all reads with this key that it joins.

        Raises:
            CloudError: the call failed; each reader gets an error of its own.
        """
        with self._lock:
            leads = key not in self._waiting
            batch = self._waiting.setdefault(key, _Batch())
            batch.items.add(item)
        if leads:
            self._perform(key, batch, call)
        else:
            batch.done.wait()
        error = batch.error
        if error is None:
            result: T = batch.result
            return result
        if leads:
            raise error
        if isinstance(error, CloudError):  # its hint is extended by whoever handles it
            raise CloudError(error.failure) from error
        return call(frozenset({item}))  # the thread of the other reader was interrupted

    def _perform(self, key: Hashable, batch: _Batch, call: Callable[[frozenset[str]], T]) -> None:
        time.sleep(_WINDOW_S)
        with self._lock:
            del self._waiting[key]
        try:
            batch.result = call(frozenset(batch.items))
        except BaseException as error:  # noqa: BLE001 (the readers raise it)
            batch.error = error
        finally:
            batch.done.set()
