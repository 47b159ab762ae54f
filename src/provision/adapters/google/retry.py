"""Repeats calls and waits for results, with pauses and limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import random
from time import gmtime, monotonic, sleep, strftime
from typing import TypeVar
from uuid import uuid4

from provision.adapters.diagnostic_log import log
from provision.adapters.google.errors import CloudError, FailureScope

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The clock and the randomness of waiting, and its bounds in seconds.

    `clock` is monotonic, `jitter` returns a number from 0 to 1. The defaults are those of
    google-api-core's retries; 40 minutes are what Terraform's google_workbench_instance gives a
    creation. `heartbeat_s` is how often a long wait is reported, `call_timeout_s` how long one
    call may take (REST: longer for many bytes). Our choice.
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
"""For services on this machine, which answer within seconds."""


def retry_call(
    call: Callable[[], T], policy: RetryPolicy, refresh: Callable[[], None] = lambda: None
) -> T:
    """Return the result of `call`, repeating it after temporary failures for `retry_limit_s`.

    A rejected token is refreshed once. Pauses grow from `first_pause_s` to `max_pause_s`, each
    between half and all of that, and are never shorter than the service's Retry-After.

    Raises:
        CloudError: the failure is not temporary, or the time is over.
    """
    end, base_pause = policy.clock() + policy.retry_limit_s, policy.first_pause_s
    attempt, is_refreshed = 0, False
    while True:
        attempt += 1
        try:
            return call()
        except CloudError as error:
            failure = error.failure
            if failure.kind == "credentials" and not is_refreshed:
                is_refreshed = True
                refresh()
                continue
            if failure.scope is not FailureScope.RETRY or failure.max_retries is not None:
                raise
            pause = max(base_pause * (0.5 + policy.jitter() / 2), failure.retry_after_s or 0)
            if policy.clock() + pause > end:
                attempts = "1 attempt" if attempt == 1 else f"{attempt} attempts"
                why = f"{failure.why}\ngave up after {attempts}"
                raise CloudError(replace(failure, why=why)) from error
            log.info("retry %d in %.1f s: %s", attempt, pause, failure.what)
            policy.sleep(pause)
            base_pause = min(base_pause * 2, policy.max_pause_s)


def poll_until(
    poll: Callable[[], T | None],
    policy: RetryPolicy,
    limit_s: float,
    heartbeat: Callable[[str], None] = lambda _: None,
) -> T | None:
    """Return the first result of `poll` that is not None, or None after `limit_s` seconds.

    Pauses grow. `heartbeat` receives the time waited so far, and the limit, as text.
    """
    start = last_heartbeat = policy.clock()
    pause = policy.first_poll_s
    while True:
        if (result := poll()) is not None:
            return result
        if policy.clock() + pause > start + limit_s:
            return None
        if policy.clock() - last_heartbeat >= policy.heartbeat_s:
            last_heartbeat = policy.clock()
            waited = format_duration(last_heartbeat - start)
            heartbeat(f"for {waited}, at most {format_duration(limit_s)}")
        policy.sleep(pause)
        pause = min(pause * 1.6, policy.max_poll_s)


def format_duration(seconds: float) -> str:
    """Return a duration as "90 s" or "5 minutes"."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} minutes"


def format_time(seconds: float) -> str:
    """Return the UTC time of day of a POSIX timestamp, as 18:05."""
    return strftime("%H:%M", gmtime(seconds))
