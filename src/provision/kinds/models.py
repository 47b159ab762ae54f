"""The places that a spec names: a model for each kind of target, and what one asks of the machine
there.
"""

import re
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from provision.field_types import (
    Duration,
    EnvironmentName,
    EnvironmentValue,
    Identifier,
    IndexUrl,
    ShorthandModel,
    Size,
    Specifiers,
    StrictModel,
)

MAX_GPUS = 16
"""Cards of one machine: a2-megagpu-16g has the most of all (Compute Engine documentation, GPU
machine types).
"""


class Gpu(ShorthandModel):
    """The accelerator: `L4`, `A100-80GB:2`, `none` for CPU, `mps` for Apple silicon, or {type,
    count}.
    """

    type: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._ -]*$")
    """Name of the card, as in L4, A100-80GB or RTX-4090; `none` for CPU; `mps` for Apple silicon."""  # noqa: E501
    count: int = Field(default=1, ge=0, le=MAX_GPUS)
    """How many cards one machine carries."""

    @model_validator(mode="before")
    @classmethod
    def _from_short(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        name, colon, count = value.partition(":")
        if colon and not re.fullmatch(r"[1-9][0-9]?", count):
            raise PydanticCustomError(
                "gpu_count", "after the colon stands the number of cards, as in A100-80GB:2"
            )
        return {"type": name, "count": int(count or 1)}

    def __str__(self) -> str:
        """Return the short form."""
        return self.type if self.is_none or self.count == 1 else f"{self.type}:{self.count}"

    @property
    def is_none(self) -> bool:
        """Whether the work runs on CPU."""
        return self.type == "none"


class Requires(StrictModel):
    """What the machine must have; each is checked on the device."""

    ram: Size | None = None
    """Memory that the process may use (the smaller of the machine's and the container's)."""
    disk: Size | None = None
    """Free disk where the environment and the declared paths lie."""
    shm: Size | None = None
    """Size of /dev/shm, which DataLoader workers share batches through."""
    vram: Size | None = None
    """Memory of one GPU."""
    driver: Specifiers | None = None
    """NVIDIA driver version, as in `>=580`."""
    compute_capability: Specifiers | None = None
    """CUDA compute capability, as in `>=8.0`."""


class _Target(StrictModel):
    gpu: Gpu | None = None
    """In place of the spec's `gpu`."""
    cuda: str | None = Field(default=None, pattern=r"^(auto|none|\d+\.\d+)$")
    """In place of the spec's `cuda`."""
    paths: dict[EnvironmentName, str] = {}
    """Merged over the spec's `paths`."""
    requires: Requires | None = None
    """In place of the spec's `requires`, key by key; a target with gpu: none is not asked for what
    only cards have.
    """


class LocalTarget(_Target):
    """An environment on this machine."""

    kind: Literal["local"]
    manager: Literal["uv", "conda"] = "uv"
    """Which program makes the environment."""
    kernel: bool = False
    """Register a Jupyter kernel for the environment (ipykernel must be among the packages)."""


class ColabTarget(_Target):
    """A Google Colab runtime."""

    kind: Literal["colab"]
    runtime: str = Field(default="latest", pattern=r"^(latest|\d{4}\.\d{2})$")
    """Version of the runtime, as in 2026.07."""
    via: Literal["browser", "colab-cli"] = "browser"
    """How the cell gets there."""
    isolation: Literal["system", "venv"] = "system"
    """On top of the runtime's packages, or in an environment of its own."""
    shape: Literal["standard", "high"] = "standard"
    """Machine shape; high has more RAM, on paid plans."""


class ColabEnterpriseTarget(_Target):
    """A Colab Enterprise runtime."""

    kind: Literal["colab-enterprise"]
    project: str
    """Google Cloud project."""
    region: str
    """Region, as in us-central1."""
    machine_type: str = "auto"
    """Machine type, or auto for the cheapest that fits."""
    isolation: Literal["system", "venv"] = "system"
    """On top of the runtime's packages, or in an environment of its own."""


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
    """Kind of Persistent Disk, or of Hyperdisk."""
    kms_key: str | None = Field(
        default=None,
        examples=["projects/my-project/locations/us-central1/keyRings/ring/cryptoKeys/key"],
    )
    """Key of Cloud KMS that encrypts it; default: a key that Google manages."""


class Access(StrictModel):
    """Who opens JupyterLab on an instance."""

    mode: Literal["service-account", "single-user"] = "service-account"
    """All who may act as the service account, or one person."""
    owner: str | None = Field(default=None, examples=["me@example.com"])
    """Mail address of the person; with single-user only."""

    @model_validator(mode="after")
    def _owner_of_one(self) -> "Access":
        if (self.owner is not None) != (self.mode == "single-user"):
            raise PydanticCustomError(
                "access_owner", "mode: single-user names its owner, and no other mode has one"
            )
        return self


class Shielded(StrictModel):
    """What Shielded VM guards."""

    secure_boot: bool = False
    """Start signed software only; with a GPU, the image must carry a signed driver."""
    vtpm: bool = True
    """A virtual trusted platform module."""
    integrity_monitoring: bool = True
    """Watch what was started against a baseline."""


class WorkbenchTarget(_Target):
    """A Vertex AI Workbench instance."""

    kind: Literal["workbench"]
    project: str
    """Google Cloud project."""
    zones: list[str] = Field(min_length=1)
    """Zones in the order in which they are tried."""
    machine_type: str = "auto"
    """Machine type, or auto for the cheapest that fits."""
    image: str | None = None
    """Exact name of the image; a family is resolved at plan and recorded."""
    gpu_driver: bool = True
    """Let Google Cloud install the NVIDIA driver on an instance with a GPU."""
    reservation: str | None = None
    """Reservation that the machine is taken from; projects/PROJECT/reservations/NAME when it is
    shared.
    """
    boot_disk: Disk = Disk.model_construct()
    """Disk of the operating system."""
    data_disk: Disk = Disk.model_construct()
    """Disk of /home/jupyter: environments, data and checkpoints."""
    network: str | None = None
    """VPC network; default: that of the project called default."""
    subnet: str | None = None
    """Subnet in the region of the zones."""
    public_ip: bool = False
    """Whether the instance has an address on the internet."""
    nat: bool = False
    """Whether the subnet reaches the internet through Cloud NAT."""
    mirrors: dict[Identifier, IndexUrl] = {}
    """Package indexes that can be reached without internet: pypi, pytorch, or a key under
    `indexes`, to an address.
    """
    service_account: str | None = None
    """Mail address of the service account that the instance runs as."""
    access: Access = Access.model_construct()
    """Who opens JupyterLab."""
    managed_euc: bool = False
    """Run with the credentials of the person who uses it (managed end user credentials)."""
    shielded: Shielded = Shielded.model_construct()
    """Shielded VM."""
    labels: dict[str, EnvironmentValue] = {}
    """Labels of the instance."""
    tags: list[str] = []
    """Network tags, for firewall rules and routes."""
    metadata: dict[str, EnvironmentValue] = {}
    """Further metadata of the instance."""
    bucket: str | None = Field(default=None, pattern=r"^gs://[a-z0-9][a-z0-9._-]+(/.*)?$")
    """Where the startup script and the report travel."""
    idle_shutdown: Duration | None = None
    """Stop the instance after this long without use."""
    max_lifetime: Duration | None = None
    """Stop the instance after this long in any case."""
    on_failure: Literal["stop", "keep", "delete"] = "stop"
    """What happens to an instance that could not be verified."""


Target = Annotated[
    LocalTarget | ColabTarget | ColabEnterpriseTarget | WorkbenchTarget, Field(discriminator="kind")
]
