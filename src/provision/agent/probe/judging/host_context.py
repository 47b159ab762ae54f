"""Judges the kernel, the clock, the kind of place, a login shell, and the way to the hub."""

from __future__ import annotations

import re

from ..checks.host import CLOCK_SKEW, KERNEL_FLOOR
from ..model import Judgement
from ..observing.variables import HARMFUL_VARIABLES, HUB_PACKAGES
from .judgement import JudgeInput, fails, format_list, passes, skipped, unknown, warns


def _kernel(given: JudgeInput) -> Judgement:
    release, kind = given["host.kernel"], given["host.kernel_kind"]
    if kind not in ("linux", "gvisor"):
        return skipped(f"the bound is of Linux; this is {kind} {release}", release)
    floor = f">={KERNEL_FLOOR.value:g}"
    if kind == "gvisor":
        return warns(
            f"the kernel is gVisor ({release})",
            floor,
            release,
            "gVisor runs programs in place of the host's kernel, and calls itself 4.4.0 on "
            "every host",
            "nothing, while training runs; the kernel's log and profilers of the card (ncu) do "
            "not work here",
        )
    numbers = re.match(r"(\d+)\.(\d+)", release)
    if numbers is None:
        return unknown(f"the kernel's release is {release!r}, which tells no number")
    if (int(numbers[1]), int(numbers[2])) >= (5, 5):
        return passes(f"Linux {release}", floor, release)
    return fails(
        f"Linux {release} is older than {KERNEL_FLOOR.value:g}",
        floor,
        release,
        "the machine's system is older than what accelerate is tested with, and a run can hang",
        "use a newer image",
    )


def _clock(given: JudgeInput) -> Judgement:
    skew, ahead = given.get("net.skew_s"), given["_clock.ahead_s"]
    fix = "set the clock (timedatectl set-ntp true), or restart the machine"
    if given["clock.behind"]:
        return fails(
            f"the clock stands before the time of {given['_clock.file']}, by {ahead:.0f} s",
            "not in the past",
            round(ahead),
            "the machine was started or woken with a wrong clock; certificates are then not "
            "yet valid, and downloads fail",
            fix,
        )
    if skew is not None and abs(skew) > CLOCK_SKEW.value:
        return fails(
            f"the clock is {abs(skew)} s {'ahead of' if skew > 0 else 'behind'} the hub's",
            0,
            skew,
            "the clock is not kept by the network's time; certificates and signed requests are "
            "refused",
            fix,
        )
    if ahead is None and skew is None:
        return unknown("no file of the environment tells a time to compare the clock with")
    message = "the clock is not behind the files of the environment"
    if skew is None:
        return passes(message, "not in the past", "not in the past")
    return passes(f"{message}, and fits the hub's", 0, skew)


def _place(given: JudgeInput) -> Judgement:
    place, container, machine = (given[f"host.{key}"] for key in ("place", "container", "machine"))
    parts = (place, f"in a container ({container})" if container else "", machine)
    message = ", ".join(filter(None, parts)) or "nothing tells of a virtual machine"
    required = given.expected.target.get("kind", "")
    wrong = (required == "colab" and place != "colab") or (
        required == "workbench" and place != "workbench" and machine != "Google Compute Engine"
    )
    if wrong and not given.expected.simulated:
        return warns(
            f"the target is of kind {required}, and nothing here says so: {message}",
            required,
            place,
            "the probe was carried to another machine, or runs outside the notebook's own "
            "environment",
            "run it where the spec's target is",
        )
    return passes(message, None, place or message)


def _login_shell(given: JudgeInput) -> Judgement:
    differs = given["login.differs"]
    if differs is None:
        return unknown("a login shell of this user could not be asked")
    values = given["_login.values"]
    if not differs:
        return passes("a new login shell sets nothing against the spec", "none", "none")
    message = [
        f"{name}={values[name]!r}, declared {given.expected.env[name]!r}"
        if name in values
        else f"{name}: {HARMFUL_VARIABLES[name]}"
        for name in differs
    ]
    return warns(
        f"a new login shell sets {format_list(message)}",
        [],
        differs,
        "the shell's start-up files (.profile, .bashrc, /etc/profile.d) set it, so terminals "
        "and programs started there see another environment",
        "remove it from there, or start programs with `provision run`",
    )


def _offline(given: JudgeInput) -> Judgement:
    observed = given["hub.offline_by"]
    if not any(name in given.expected.packages for name in HUB_PACKAGES):
        return skipped("nothing that asks the hub is locked")
    undeclared = [name for name in observed if name not in given.expected.env]
    if undeclared:
        return warns(
            f"{', '.join(undeclared)} keeps the hub's libraries offline",
            [],
            observed,
            "the image, the shell or the notebook server sets it: the libraries then say they "
            "cannot connect, whatever the network does",
            "unset it, or declare it under env: in the spec",
        )
    return passes(
        f"offline as declared ({', '.join(observed)})"
        if observed
        else "no variable keeps the hub's libraries offline",
        observed or "none",
        observed or "none",
    )


def _way(given: JudgeInput) -> Judgement:
    reached, problem, hub = (given[f"net.{key}"] for key in ("reached", "problem", "hub"))
    if not reached:
        return (
            unknown(problem)
            if problem
            else skipped("nothing that asks the hub is locked, or the spec declares it offline")
        )
    through = " through the proxy" if given["net.proxy"] else ""
    if problem and reached != "answer":
        return warns(
            f"{hub or 'the hub'} is not reached{through}: {problem}",
            "answer",
            reached,
            {
                "name": "no name service is reached, or the address is wrong",
                "connection": "a firewall, or a network without a way out",
                "tls": "a proxy that reads along, a wrong clock, or missing root certificates",
            }[reached],
            "let the machine reach it, set HTTPS_PROXY or HF_ENDPOINT, or set HF_HUB_OFFLINE=1 "
            "under env: and bring the files along",
        )
    return passes(f"{hub}: name, connection and certificate hold{through}", "answer", reached)


def _answer(given: JudgeInput) -> Judgement:
    reached, status, hub = (given[f"net.{key}"] for key in ("reached", "status", "hub"))
    if reached != "answer":
        return skipped("the hub was not asked, or not reached")
    if status is not None and status < 400:
        return passes(f"{hub} answers with status {status}", "<400", status)
    message = f"status {status}" if status is not None else f"nothing ({given['net.problem']})"
    return warns(
        f"{hub} answers with {message}",
        "<400",
        status,
        "a gateway that lets connections in and nothing through, or a fault of the hub",
        "open it in a browser from there; ask who runs the network",
    )


JUDGES = {
    "H03": _kernel,
    "H09": _clock,
    "H11": _place,
    "W02": _login_shell,
    "E03": _offline,
    "X01": _way,
    "X02": _answer,
}
