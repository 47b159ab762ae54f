"""A look-alike of Google's services and a client of it; a clock that costs no time; bodies of
instances as they are sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from provision.adapters.google.client import GoogleClient
from provision.adapters.google.endpoints import Endpoints
from provision.adapters.google.instance_creation import CreatedInstance, create_instance
from provision.adapters.google.retry import RetryPolicy
from provision.effects.google import CreateInstance
from provision.sandbox.lifecycle import Delays
from provision.sandbox.serve import Sandbox, serve

PROJECT = "my-project"
ZONES = ("us-central1-a", "us-central1-b", "us-east1-b")
INSTANCE = "provision-spec-workbench-0a1b2c3d"
REQUEST = "7d9f3a52-0c1e-4f6b-9a55-0d1c2b3a4e5f"


class Clock:
    """Seconds that pass only where somebody sleeps; every wait is noted."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds

    def __call__(self) -> float:
        return self.now

    def pace(self, **more: Any) -> RetryPolicy:
        return RetryPolicy(**{"sleep": self.sleep, "clock": self, "jitter": lambda: 1.0, **more})


class Cloud(NamedTuple):
    """A sandbox at work, a client of it, what the client told, and its clock."""

    sandbox: Sandbox
    services: GoogleClient
    lines: list[str]
    clock: Clock

    def name(self, zone: str) -> str:
        return f"projects/{PROJECT}/locations/{zone}/instances/{INSTANCE}"

    def names(self) -> list[str]:
        assert self.sandbox.store is not None
        return sorted(one["name"] for one in self.services.instances(PROJECT))

    def create(
        self,
        zones: tuple[str, ...] = ZONES,
        body: dict[str, Any] | None = None,
        instead_of: str = "",
    ) -> CreatedInstance:
        request = CreateInstance(PROJECT, zones, INSTANCE, body or instance(), REQUEST, instead_of)
        return create_instance(self.services.operations(self.lines.append), request)


Begin = Callable[..., Cloud]


@pytest.fixture(params=["grpc", "rest"])
def way(request: pytest.FixtureRequest) -> str:
    """Which way the client's calls go; every scenario is run both ways."""
    return str(request.param)


@pytest.fixture
def begin(tmp_path: Path, way: str) -> Iterator[Begin]:
    """Begin a sandbox with faults, and a client of it."""
    with ExitStack() as stack:

        def begun(*faults: str, delays: Delays | None = None, **more: Any) -> Cloud:
            clock = Clock()
            sandbox = stack.enter_context(serve(tmp_path / "sandbox", faults, delays=delays))
            return Cloud(
                sandbox,
                GoogleClient(
                    Endpoints.from_addresses(sandbox.endpoints),
                    clock.pace(**more),
                    only_rest=way == "rest",
                ),
                [],
                clock,
            )

        yield begun


def instance(
    machine: str = "g2-standard-8", card: str = "NVIDIA_L4", count: int = 1, **setup: Any
) -> dict[str, Any]:
    """The body of an instance as the target makes it."""
    return {
        "labels": {
            "provision": "1",
            "provision-spec": "spec",
            "provision-target": "workbench",
            "provision-lineage": "f" * 32,
            "provision-lock": "0123456789ab",
        },
        "gceSetup": {
            "machineType": machine,
            "acceleratorConfigs": [{"type": card, "coreCount": str(count)}],
            "vmImage": {
                "project": "cloud-notebooks-managed",
                "name": "workbench-instances-2603-20261004-2157-rc0",
            },
            "bootDisk": {"diskSizeGb": "150", "diskType": "PD_BALANCED", "diskEncryption": "GMEK"},
            "dataDisks": [
                {"diskSizeGb": "100", "diskType": "PD_BALANCED", "diskEncryption": "GMEK"}
            ],
            "disablePublicIp": True,
            "gpuDriverConfig": {"enableGpuDriver": True},
            "shieldedInstanceConfig": {"enableVtpm": True, "enableIntegrityMonitoring": True},
            "serviceAccounts": [{"email": "trainer@my-project.iam.gserviceaccount.com"}],
            "metadata": {
                "provision-run": '{"nonce":"1"}',
                "post-startup-script": "gs://my-bucket/provision/i/program.sh",
                "post-startup-script-behavior": "download_and_run_every_start",
                "enable-guest-attributes": "true",
                "idle-timeout-seconds": "3600",
            },
            **setup,
        },
    }


BODIES = {
    "T4": instance("n1-standard-8", "NVIDIA_TESLA_T4"),
    "L4": instance(),
    "A100": instance("a2-highgpu-1g", "NVIDIA_TESLA_A100"),
    "H100": instance("a3-highgpu-8g", "NVIDIA_H100_80GB", 8),
    "hyperdisk": instance(
        dataDisks=[
            {"diskSizeGb": "100", "diskType": "HYPERDISK_BALANCED", "diskEncryption": "GMEK"}
        ]
    ),
    "reservation": instance(
        reservationAffinity={
            "consumeReservationType": "RESERVATION_SPECIFIC",
            "key": "compute.googleapis.com/reservation-name",
            "values": ["kept"],
        }
    ),
}
"""One body for each thing that the API is asked for."""
