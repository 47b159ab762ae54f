"""How calls are repeated: which failures, how long between two, how long in all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import random
from time import monotonic, sleep
from typing import TypeVar
from uuid import uuid4

from provision.adapters.google.errors import CloudError, FailureScope
from provision.adapters.google.log_tail import format_duration

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The clock (seconds, never set back), how to wait, a number from 0 to 1 that spreads waits,
    and fresh UUIDs; then bounds in seconds.

    The defaults are of google-api-core's retries; 40 minutes are what Terraform's
    google_workbench_instance gives a creation. `beat_s`: a wait of that long
    is said, again and again. `answer_s`: how long one call may take (REST: and longer for many
    bytes). Our choice.
    """

    sleep: Callable[[float], None] = sleep
    clock: Callable[[], float] = monotonic
    jitter: Callable[[], float] = random
    new_uuid: Callable[[], str] = lambda: str(uuid4())
    first_pause_s: float = 1.0
    max_pause_s: float = 32.0
    retry_limit_s: float = 180.0
    first_poll_s: float = 0.1
    max_poll_s: float = 15.0
    operation_s: float = 2400.0
    boot_s: float = 1200.0
    visible_s: float = 60.0
    heartbeat_s: float = 60.0
    call_timeout_s: float = 60.0


LOOPBACK_POLICY = RetryPolicy(
    retry_limit_s=60.0, operation_s=120.0, boot_s=120.0, visible_s=10.0, heartbeat_s=15.0
)
"""For services on this machine, where nothing takes minutes."""


def retry_call(
    call: Callable[[], T], pace: RetryPolicy, refresh: Callable[[], None] = lambda: None
) -> T:
    """Return what `call` returns, made again where its CloudError passes by itself, at most for
    `patience_s`; a refused token is fetched anew once.

    Waits grow from `first_s` to `most_s`, each between a half and the whole of that; what the
    service asks for (Retry-After) is never cut short.
    """
    end, wait, asked, renewed = pace.clock() + pace.retry_limit_s, pace.first_pause_s, 0, False
    while True:
        asked += 1
        try:
            return call()
        except CloudError as error:
            failure = error.failure
            if failure.kind == "credentials" and not renewed:
                renewed = True
                refresh()
                continue
            if failure.scope is not FailureScope.RETRY or failure.max_retries is not None:
                raise
            pause = max(wait * (0.5 + pace.jitter() / 2), failure.retry_after_s or 0)
            if pace.clock() + pause > end:
                times = "once" if asked == 1 else f"{asked} times"
                raise CloudError(
                    replace(failure, why=f"{failure.why}\nasked {times}, and gave up")
                ) from error
            pace.sleep(pause)
            wait = min(wait * 2, pace.max_pause_s)


def poll_until(
    look: Callable[[], T | None],
    pace: RetryPolicy,
    within_s: float,
    still: Callable[[str], None] = lambda _: None,
) -> T | None:
    """Return what `look` finds as soon as it finds something, None when `within_s` seconds are
    over; the pauses grow.

    `still` is told each `beat_s` for how long it waits, and how long at most.
    """
    began, pause, said = pace.clock(), pace.first_poll_s, pace.clock()
    end = began + within_s
    while True:
        if (found := look()) is not None:
            return found
        if pace.clock() + pause > end:
            return None
        if pace.clock() - said >= pace.heartbeat_s:
            said = pace.clock()
            still(f"for {format_duration(said - began)}, at most {format_duration(within_s)}")
        pace.sleep(pause)
        pause = min(pause * 1.6, pace.max_poll_s)
