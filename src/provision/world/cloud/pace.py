"""How calls are repeated: which failures, how long between two, how long in all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import random
from time import monotonic, sleep
from typing import TypeVar
from uuid import uuid4

from provision.world.cloud.failures import CloudError, Width
from provision.world.last_words import lasting

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Pace:
    """The clock (seconds, never set back), how to wait, a number from 0 to 1 that spreads waits, and fresh UUIDs; then bounds in seconds.

    The defaults are of google-api-core's retries; 40 minutes are what Terraform's google_workbench_instance gives a creation. `beat_s`: a wait of that long
    is said, again and again. `answer_s`: how long one call may take (REST: and longer for many bytes). Our choice.
    """

    sleep: Callable[[float], None] = sleep
    clock: Callable[[], float] = monotonic
    jitter: Callable[[], float] = random
    fresh: Callable[[], str] = lambda: str(uuid4())
    first_s: float = 1.0
    most_s: float = 32.0
    patience_s: float = 180.0
    poll_first_s: float = 0.1
    poll_most_s: float = 15.0
    operation_s: float = 2400.0
    boot_s: float = 1200.0
    visible_s: float = 60.0
    beat_s: float = 60.0
    answer_s: float = 60.0


LOOPBACK = Pace(patience_s=60.0, operation_s=120.0, boot_s=120.0, visible_s=10.0, beat_s=15.0)
"""For services on this machine, where nothing takes minutes."""


def repeated(call: Callable[[], T], pace: Pace, refresh: Callable[[], None] = lambda: None) -> T:
    """Return what `call` returns, made again where its CloudError passes by itself, at most for `patience_s`; a refused token is fetched anew once.

    Waits grow from `first_s` to `most_s`, each between a half and the whole of that; what the service asks for (Retry-After) is never cut short.
    """
    end, wait, asked, renewed = pace.clock() + pace.patience_s, pace.first_s, 0, False
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
            if failure.width is not Width.RETRY or failure.repeats is not None:
                raise
            pause = max(wait * (0.5 + pace.jitter() / 2), failure.retry_after_s or 0)
            if pace.clock() + pause > end:
                times = "once" if asked == 1 else f"{asked} times"
                raise CloudError(replace(failure, why=f"{failure.why}\nasked {times}, and gave up")) from error
            pace.sleep(pause)
            wait = min(wait * 2, pace.most_s)


def polled(look: Callable[[], T | None], pace: Pace, within_s: float, still: Callable[[str], None] = lambda _: None) -> T | None:
    """Return what `look` finds as soon as it finds something, None when `within_s` seconds are over; the pauses grow.

    `still` is told each `beat_s` for how long it waits, and how long at most.
    """
    began, pause, said = pace.clock(), pace.poll_first_s, pace.clock()
    end = began + within_s
    while True:
        if (found := look()) is not None:
            return found
        if pace.clock() + pause > end:
            return None
        if pace.clock() - said >= pace.beat_s:
            said = pace.clock()
            still(f"for {lasting(said - began)}, at most {lasting(within_s)}")
        pace.sleep(pause)
        pause = min(pause * 1.6, pace.poll_most_s)
