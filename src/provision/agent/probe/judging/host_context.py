"""Judges the kernel, the clock, the kind of place, a login shell, and the way to the hub."""

from __future__ import annotations

import re

from ..checks.host import CLOCK_SKEW, KERNEL_FLOOR
from ..instructions import AVX, avx_packages
from ..model import Judgement
from ..observing.variables import HARMFUL_VARIABLES, HUB_PACKAGES
from .judgement import JudgeInput, fails, format_list, passes, skipped, unknown, warns


def _kernel(given: JudgeInput) -> Judgement:
    release, kind = given["host.kernel"], given["host.kernel_kind"]
    if kind not in ("linux", "gvisor"):
        return skipped(f"the minimum applies only to Linux; this is {kind} {release}", release)
    floor = f">={KERNEL_FLOOR.value:g}"
    if kind == "gvisor":
        return warns(
            f"the kernel is gVisor ({release})",
            floor,
            release,
            "gVisor replaces the host's kernel and reports version 4.4.0 on every host",
            "no action is needed if training works; the kernel log and GPU profilers (ncu) do "
            "not work under gVisor",
        )
    numbers = re.match(r"(\d+)\.(\d+)", release)
    if numbers is None:
        return unknown(f"the kernel release {release!r} has no version number")
    if (int(numbers[1]), int(numbers[2])) >= (5, 5):
        return passes(f"Linux {release}", floor, release)
    return fails(
        f"Linux {release} is older than {KERNEL_FLOOR.value:g}",
        floor,
        release,
        "accelerate is not tested with kernels this old, and training can hang",
        "use a newer image",
    )


def _clock(given: JudgeInput) -> Judgement:
    skew, ahead = given.get("net.skew_s"), given["_clock.ahead_s"]
    fix = "set the clock (timedatectl set-ntp true), or restart the machine"
    if given["clock.behind"]:
        return fails(
            f"the clock is {ahead:.0f} s behind the modification time of {given['_clock.file']}",
            "no earlier than the last change to that file",
            round(ahead),
            "the machine booted or resumed with the wrong time; certificates then appear to "
            "be not yet valid, and downloads fail",
            fix,
        )
    if skew is not None and abs(skew) > CLOCK_SKEW.value:
        return fails(
            f"the clock is {abs(skew)} s {'ahead of' if skew > 0 else 'behind'} the Hub's clock",
            0,
            skew,
            "the clock is not synchronized over the network; certificates and signed requests are "
            "rejected",
            fix,
        )
    if ahead is None and skew is None:
        return unknown("no file in the environment has a time to compare the clock with")
    message = "the clock is not behind the files in the environment"
    if skew is None:
        return passes(
            message,
            "no earlier than the files",
            "later than the files",
        )
    return passes(f"{message}, and agrees with the Hub's clock", 0, skew)


def _place(given: JudgeInput) -> Judgement:
    place, container, machine = (given[f"host.{key}"] for key in ("place", "container", "machine"))
    parts = (place, f"in a container ({container})" if container else "", machine)
    message = ", ".join(filter(None, parts)) or "no sign of a container or a virtual machine"
    required = given.expected.target.get("kind", "")
    wrong = (required == "colab" and place != "colab") or (
        required == "workbench" and place != "workbench" and machine != "Google Compute Engine"
    )
    if wrong and not given.expected.simulated:
        return warns(
            f"the target's kind is {required}, but this machine does not look like a {required} "
            f"machine: {message}",
            required,
            place,
            "the probe was copied to another machine, or is running outside the notebook's "
            "environment",
            "run the probe on the target",
        )
    return passes(message, None, place or message)


def _login_shell(given: JudgeInput) -> Judgement:
    differs = given["login.differs"]
    if differs is None:
        return unknown("a login shell of this user could not be started")
    values = given["_login.values"]
    if not differs:
        return passes(
            "a new login shell sets no environment variables that conflict with the spec",
            "none",
            "none",
        )
    message = [
        f"{name}={values[name]!r} (declared: {given.expected.env[name]!r})"
        if name in values
        else f"{name}: {HARMFUL_VARIABLES[name]}"
        for name in differs
    ]
    return warns(
        f"a new login shell sets {format_list(message)}",
        [],
        differs,
        "the shell's startup files (.profile, .bashrc, /etc/profile.d) set this, so terminals "
        "and programs started from them get a different environment",
        "remove the setting from these files, or start programs with `provision run`",
    )


def _offline(given: JudgeInput) -> Judgement:
    observed = given["hub.offline_by"]
    if not any(name in given.expected.packages for name in HUB_PACKAGES):
        return skipped("no locked package uses the Hub")
    undeclared = [name for name in observed if name not in given.expected.env]
    if undeclared:
        return warns(
            f"{', '.join(undeclared)} keeps the Hugging Face libraries offline",
            [],
            observed,
            "the image, the shell or the notebook server sets the variable; the libraries then "
            "report that they cannot connect, even if the network works",
            "unset the variable, or declare it under `env` in the spec",
        )
    return passes(
        f"offline as declared ({', '.join(observed)})"
        if observed
        else "no variable keeps the Hugging Face libraries offline",
        observed or "none",
        observed or "none",
    )


def _way(given: JudgeInput) -> Judgement:
    reached, problem, hub = (given[f"net.{key}"] for key in ("reached", "problem", "hub"))
    if not reached:
        return (
            unknown(problem)
            if problem
            else skipped("no locked package uses the Hub, or the spec declares offline mode")
        )
    through = " through the proxy" if given["net.proxy"] else ""
    if problem and reached != "answer":
        return warns(
            f"{hub or 'the Hub'} cannot be reached{through}: {problem}",
            "a response",
            reached,
            {
                "name": "DNS does not work, or the address is wrong",
                "connection": "a firewall blocks it, or the network has no internet access",
                "tls": "a proxy intercepts TLS, the clock is wrong, or root certificates are "
                "missing",
            }[reached],
            "allow the connection, set HTTPS_PROXY or HF_ENDPOINT, or set HF_HUB_OFFLINE=1 "
            "under `env` in the spec and copy the files to the machine",
        )
    return passes(
        f"{hub} can be reached{through}, and its certificate is valid", "a response", "a response"
    )


def _answer(given: JudgeInput) -> Judgement:
    reached, status, hub = (given[f"net.{key}"] for key in ("reached", "status", "hub"))
    if reached != "answer":
        return skipped("the Hub was not contacted, or could not be reached")
    if status is not None and status < 400:
        return passes(f"{hub} returned status {status}", "an HTTP status below 400", status)
    message = f"status {status}" if status is not None else f"no response ({given['net.problem']})"
    return warns(
        f"{hub} returned {message}",
        "an HTTP status below 400",
        status,
        "a gateway accepts connections but blocks requests, or the Hub is having problems",
        "open the address in a browser on this machine to see what answers, or ask the network "
        "administrator",
    )


def _instructions(given: JudgeInput) -> Judgement:
    missing = given["host.missing_instructions"]
    names = ", ".join(avx_packages(given.expected.packages, given.expected.platform))
    if missing is None:
        return unknown("the processor's instructions are unknown: /proc/cpuinfo lists none")
    if not missing:
        return passes(f"the processor supports AVX instructions, required by {names}", AVX, AVX)
    return fails(
        f"this processor lacks the AVX instructions required by {names}",
        AVX,
        missing,
        "the processor is too old to have AVX, or the virtual machine does not expose it; "
        'importing TensorFlow then ends the process with "Illegal instruction" and no other '
        "message",
        "use a different machine type, select the host's CPU type in the hypervisor (QEMU: -cpu "
        "host), or build the package without AVX",
    )


JUDGES = {
    "H03": _kernel,
    "H13": _instructions,
    "H09": _clock,
    "H11": _place,
    "W02": _login_shell,
    "E03": _offline,
    "X01": _way,
    "X02": _answer,
}
