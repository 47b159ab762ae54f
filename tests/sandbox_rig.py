"""The sandbox and the real clients that speak to it."""

from __future__ import annotations

import contextlib
import json
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import grpc
from google.api_core.retry import Retry
from google.auth.credentials import AnonymousCredentials
from google.cloud import notebooks_v2 as nb
from google.cloud.notebooks_v2.services.notebook_service.transports import (
    NotebookServiceGrpcTransport,
)
from googleapiclient import discovery

from provision.sandbox.serve import Sandbox, serve

PROJECT = "projects/my-project"
ZONE = f"{PROJECT}/locations/us-central1-a"
NAME = f"{ZONE}/instances/one"
SOON = Retry(initial=0.01, maximum=0.05, timeout=600)
BODY: dict[str, Any] = {
    "gceSetup": {
        "machineType": "g2-standard-4",
        "acceleratorConfigs": [{"type": "NVIDIA_L4", "coreCount": "1"}],
        "vmImage": {
            "project": "cloud-notebooks-managed",
            "name": "workbench-instances-2603-20261004-2157-rc0",
        },
        "bootDisk": {"diskSizeGb": "200", "diskType": "PD_SSD"},
        "gpuDriverConfig": {"enableGpuDriver": True},
        "disablePublicIp": True,
        "tags": ["mine"],
        "metadata": {"post-startup-script": "gs://bucket/program.sh", "provision-run": "{}"},
    },
    "labels": {"provision": "1"},
}


class Clients:
    """A running sandbox with a gRPC client, a discovery client, and plain HTTP."""

    def __init__(self, running: Sandbox) -> None:
        self.running = running
        self.store = running.store
        self.root = running.endpoints["notebooks_rest"]
        # grpc honours http_proxy even for loopback.
        channel = grpc.insecure_channel(
            running.endpoints["notebooks_grpc"], options=[("grpc.enable_http_proxy", 0)]
        )
        self.channel = channel
        self.grpc = nb.NotebookServiceClient(
            transport=NotebookServiceGrpcTransport(channel=channel)
        )
        built = discovery.build(
            "notebooks",
            "v2",
            static_discovery=True,
            credentials=AnonymousCredentials(),
            client_options={"api_endpoint": self.root},
        )
        self.built = built
        self.rest = built.projects().locations()

    def http(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, Any, Mapping[str, str]]:
        """Return status, body (JSON where it is some) and headers of a plain request."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.root + path, data=data, method=method, headers=dict(headers or {})
        )
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=600) as answer:
                return answer.status, _read(answer), answer.headers
        except urllib.error.HTTPError as error:
            return error.code, _read(error), error.headers

    def made(self, name: str = NAME, body: Mapping[str, Any] = BODY) -> dict[str, Any]:
        """Make an instance over REST, wait until it is ACTIVE, and return it."""
        parent, _, instance = name.rpartition("/instances/")
        operation = self.done(
            self.rest.instances()
            .create(parent=parent, instanceId=instance, body=dict(body))
            .execute()
        )
        assert "error" not in operation, operation
        while (shown := self.rest.instances().get(name=name).execute())["state"] != "ACTIVE":
            pass
        return dict(shown)

    def done(self, operation: Mapping[str, Any]) -> dict[str, Any]:
        """Ask for an operation until it is done."""
        while not operation.get("done"):
            operation = self.rest.operations().get(name=operation["name"]).execute()
        return dict(operation)


def _read(answer: Any) -> Any:
    content = answer.read()
    return json.loads(content) if "json" in answer.headers.get("Content-Type", "") else content


@contextlib.contextmanager
def clients(folder: Path, *faults: str, **options: Any) -> Iterator[Clients]:
    """Run a sandbox with clients."""
    with serve(folder, faults, **options) as running:
        made = Clients(running)
        try:
            yield made
        finally:
            made.built.close()
            made.channel.close()
            made.grpc.transport.close()
