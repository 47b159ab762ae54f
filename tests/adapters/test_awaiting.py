"""Waiting for a device, minutes passing at once: the progress, and the limit that ends it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from provision.adapters.google.report_polling import (
    DeviceFailed,
    PollingClock,
    ReportTimeout,
    ReportUnavailable,
    await_report,
)
from provision.effects.google import AwaitReport

NAME = "projects/my-project/locations/us-central1-a/instances/provision-spec-wb"
URI = "gs://my-bucket/p/provision-spec-wb/n1/"
MIDDAY = 12 * 3600.0
REPORT = json.dumps({"subject": {"nonce": "n1"}}).encode()


@dataclass
class Device:
    """An instance as its services tell it. `script` says what happens at a second of the wait: a
    status, or other fields by their names.
    """

    script: dict[float, dict[str, Any]] = field(default_factory=dict)
    attributes: dict[str, str] | None = field(default_factory=dict)
    objects: dict[str, bytes] = field(default_factory=dict)
    state: str = "ACTIVE"
    console_text: str = ""
    time: float = 0.0
    asked: int = 0

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.time += seconds
        for due in [moment for moment in self.script if moment <= self.time]:
            event = self.script.pop(due)
            if "p" in event and self.attributes is not None:
                self.attributes["status"] = json.dumps({"n": "n1", "s": "running", **event})
            for name, value in event.items():
                if hasattr(self, name):
                    setattr(self, name, value)

    def guest_attributes(self, name: str, namespace: str) -> dict[str, str] | None:
        assert name == NAME
        self.asked += namespace == "provision"
        return self.attributes if namespace == "provision" else {}

    def object(self, uri: str, limit: int) -> bytes | None:
        return self.objects.get(uri)

    def instance(self, name: str) -> Mapping[str, Any] | None:
        return {"state": self.state} if self.state else None

    def serial_output(self, name: str, start: int) -> tuple[str, int]:
        return self.console_text[start:], len(self.console_text)

    def console(self, name: str) -> str:
        return self.console_text

    def finish(self) -> dict[str, Any]:
        result = {"result": json.dumps({"n": "n1", "sha256": hashlib.sha256(REPORT).hexdigest()})}
        return {"attributes": result, "objects": {f"{URI}report.json": REPORT}}


def wait(device: Device, lines: list[str], *, timeout_s: int = 6000, verify_s: int = 600) -> bytes:
    effect = AwaitReport(
        NAME, "my-project", "us-central1-a", URI, "n1", Path("report.json"), timeout_s, verify_s
    )
    clock = PollingClock(now=device.now, sleep=device.sleep, wall_time=lambda: MIDDAY + device.time)
    return await_report(effect, device, lines.append, clock)  # type: ignore[arg-type]


def test_every_minute_says_what_is_waited_for_since_when_and_until_when() -> None:
    lines: list[str] = []
    device = Device(
        {100: {"p": "packages", "i": 3, "of": 9}, 400: {"p": "packages", "i": 5, "of": 9}}
    )
    device.script[500] = device.finish()
    assert wait(device, lines) == REPORT
    assert lines == [
        "still boot: no status from the device yet (since 12:00, until 12:20 UTC at the latest)",
        "packages: 3 of 9",
        *["still packages: 3 of 9 (since 12:01, until 13:40 UTC at the latest)"] * 4,
        "packages: 5 of 9",
        "still packages: 5 of 9 (since 12:01, until 13:40 UTC at the latest)",
    ]
    assert device.asked <= 500 / 20 + 1, "three questions a minute"


def test_a_device_that_says_nothing_at_all_is_given_up_with_what_was_seen_last() -> None:
    lines: list[str] = []
    device = Device(
        console_text="\n".join(
            ["kernel: line"] * 9 + ["\x1b[31mstartup-script: curl: (22) 404 hf_" + "A1b2" * 8]
        )
    )
    with pytest.raises(ReportTimeout) as caught:
        wait(device, lines)
    assert (device.time, caught.value.exit_code) == (1200, 3)
    assert len(lines) == 19
    told = caught.value.why.splitlines()
    assert told[:4] == [
        (
            "the device sent no status within 20 minutes: its program did not start, "
            "or its messages do not arrive"
        ),
        "last status: none",
        "guest attributes: readable",
        "instance: ACTIVE",
    ]
    assert told[4:9] == ["console: kernel: line"] * 5
    assert "startup-script: curl: (22) 404" in told[9]
    assert "\x1b" not in caught.value.why
    assert "A1b2" not in caught.value.why


def test_the_verification_has_a_limit_of_its_own() -> None:
    device = Device(
        {60: {"p": "packages", "i": 1, "of": 2}, 3000: {"p": "verify", "i": 2, "of": 2}}
    )
    with pytest.raises(ReportTimeout, match="was not verified") as caught:
        wait(device, [])
    assert device.time == 3600
    assert caught.value.why.startswith(
        "the verification did not end within 10 minutes (verify.timeout"
    )
    assert (
        "last status: verification: the probe is running on the device, 10 minutes ago"
        in caught.value.why
    )


def test_the_whole_has_a_limit_whatever_the_device_says() -> None:
    script = {
        float(second): {"p": "packages", "i": second, "of": 10**6} for second in range(60, 9000, 60)
    }
    device = Device(script)
    with pytest.raises(ReportTimeout) as caught:
        wait(device, [])
    assert device.time == 6000
    assert caught.value.why.startswith(
        "no report arrived within 100 minutes\nlast status: packages: 6000 of 1000000, 0 s ago"
    )


def test_without_guest_attributes_silence_is_no_end_and_the_console_is_shown() -> None:
    lines: list[str] = []
    device = Device(attributes=None, console_text="x: provision: phase packages\r\nother\n")
    device.script[1500] = {
        "objects": {
            f"{URI}status.json": b'{"n": "n1", "s": "done", "p": "report"}',
            f"{URI}report.json": REPORT,
        }
    }
    assert wait(device, lines) == REPORT
    assert lines[0].startswith("the instance's guest attributes cannot be read")
    assert (
        lines[1] == "still boot: no status from the device yet (since 12:00, until 13:40 "
        "UTC at the latest); its console: phase packages"
    )
    assert sum("cannot be read" in line for line in lines) == 1
    device = Device(attributes=None)
    with pytest.raises(ReportTimeout) as caught:
        wait(device, [])
    assert (
        "guest attributes: not readable (because of a policy or a missing role)" in caught.value.why
    )
    assert "console: empty or not readable" in caught.value.why


@pytest.mark.parametrize(
    ("line", "seconds"),
    [("phase packages", 6000), ("ended in phase start, line 9, exit code 1; see the log", 1200)],
)
def test_a_silent_device_whose_console_shows_that_it_works_is_not_given_up(
    line: str, seconds: int
) -> None:
    lines: list[str] = []
    device = Device(console_text=f"startup-script: provision: {line}\n")
    with pytest.raises(ReportTimeout):
        wait(device, lines)
    assert device.time == seconds
    assert sum("its console shows that its program is running" in said for said in lines) == (
        seconds == 6000
    )
    assert (lines[-1].endswith("; its console: phase packages")) is (seconds == 6000)


def test_an_instance_that_stops_ends_the_wait() -> None:
    with pytest.raises(ReportUnavailable) as caught:
        wait(Device({90: {"state": "STOPPED"}}), [])
    assert type(caught.value) is ReportUnavailable
    assert caught.value.why.startswith("the instance is STOPPED and did not send a report")


def test_a_failure_of_the_device_ends_the_wait_at_once() -> None:
    device = Device(
        {90: {"p": "packages", "s": "error", "e": "no space\x1b[2J left"}},
        objects={f"{URI}log.txt": b"uv: oh\n\n"},
    )
    with pytest.raises(DeviceFailed) as caught:
        wait(device, [])
    assert caught.value.why.splitlines()[0].startswith("in phase packages: no space")
    assert caught.value.why.splitlines()[-1] == "log: uv: oh"
    assert "\x1b" not in caught.value.why


def test_what_answers_another_run_is_not_heard() -> None:
    device = Device()
    device.attributes = {
        "status": json.dumps({"n": "n0", "s": "error", "p": "packages", "e": "an old failure"})
    }
    with pytest.raises(ReportTimeout, match="was not verified"):
        wait(device, [])
