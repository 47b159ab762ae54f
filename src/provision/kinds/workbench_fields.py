"""The fields of the kind `workbench`."""

from typing import Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from provision.field_types import (
    Duration,
    EnvironmentValue,
    Identifier,
    IndexUrl,
    Size,
    StrictModel,
)
from provision.kinds.base import TargetModel


class Disk(StrictModel):
    """A disk of an instance."""

    size: Size | None = None
    """Size; default: 150 GB for the boot disk, 100 GB for the data disk."""
    type: Literal[
        "standard",
        "ssd",
        "balanced",
        "extreme",
        "hyperdisk-balanced",
        "hyperdisk-balanced-high-availability",
        "hyperdisk-extreme",
        "hyperdisk-ml",
        "hyperdisk-throughput",
    ] = "balanced"
    """Type of Persistent Disk or Hyperdisk."""
    kms_key: str | None = Field(
        default=None,
        examples=["projects/my-project/locations/us-central1/keyRings/ring/cryptoKeys/key"],
    )
    """Cloud KMS key that encrypts the disk; default: a Google-managed key."""


class Access(StrictModel):
    """People who may open JupyterLab on an instance."""

    mode: Literal["service-account", "single-user"] = "service-account"
    """Everyone who may act as the service account, or a single user."""
    owner: str | None = Field(default=None, examples=["me@example.com"])
    """Email address of the single user."""

    @model_validator(mode="after")
    def _owner_of_one(self) -> "Access":
        if (self.owner is not None) != (self.mode == "single-user"):
            raise PydanticCustomError(
                "access_owner",
                "`owner` is required with `mode: single-user`, and not allowed otherwise",
            )
        return self


class Shielded(StrictModel):
    """Protections of Shielded VM."""

    secure_boot: bool = False
    """Start only signed software; with a GPU, the image needs a signed driver."""
    vtpm: bool = True
    """Virtual trusted platform module."""
    integrity_monitoring: bool = True
    """Compare the boot sequence with a baseline."""


class WorkbenchTarget(TargetModel):
    """A Vertex AI Workbench instance."""

    kind: Literal["workbench"]
    project: str
    """Google Cloud project."""
    zones: list[str] = Field(min_length=1)
    """Zones, in the order in which they are tried."""
    machine_type: str = "auto"
    """Machine type, or `auto`: the existing one while it fits, else the cheapest that fits."""
    image: str | None = None
    """Exact name of an image, or its family; `plan` resolves a family and records the image."""
    gpu_driver: bool = True
    """Let Google Cloud install the NVIDIA driver on an instance with a GPU."""
    reservation: str | None = None
    """Reservation to use; projects/PROJECT/reservations/NAME for a shared one."""
    boot_disk: Disk = Disk.model_construct()
    """Boot disk, with the operating system."""
    data_disk: Disk = Disk.model_construct()
    """Data disk, mounted at /home/jupyter: environments, data and checkpoints."""
    network: str | None = None
    """VPC network; default: the project's network named default."""
    subnet: str | None = None
    """Subnet in the same region as the zones."""
    public_ip: bool = False
    """Give the instance a public IP address."""
    nat: bool = False
    """Whether the subnet reaches the internet through Cloud NAT."""
    mirrors: dict[Identifier, IndexUrl] = {}
    """Addresses of package indexes that are reachable without internet access, by name: pypi,
    pytorch, or a key under `indexes`.
    """
    service_account: str | None = None
    """Email address of the service account that the instance runs as."""
    access: Access = Access.model_construct()
    """Users who may open JupyterLab."""
    managed_euc: bool = False
    """Run with the credentials of the user (managed end user credentials)."""
    shielded: Shielded = Shielded.model_construct()
    """Shielded VM features."""
    labels: dict[str, EnvironmentValue] = {}
    """Labels of the instance."""
    tags: list[str] = []
    """Network tags, for firewall rules and routes."""
    metadata: dict[str, EnvironmentValue] = {}
    """Additional metadata of the instance."""
    bucket: str | None = Field(default=None, pattern=r"^gs://[a-z0-9][a-z0-9._-]{2,}(/.*)?$")
    """Folder in Cloud Storage for the startup script and the report."""
    idle_shutdown: Duration | None = None
    """Stop the instance after this time without use."""
    max_lifetime: Duration | None = None
    """Stop the instance after this time in any case."""
    on_failure: Literal["stop", "keep", "delete"] = "stop"
    """Action for an instance that could not be verified."""
