"""The accelerator and CUDA version that hold at each target, and where each of the two was written."""

from __future__ import annotations

from dataclasses import dataclass

from provision.diagnostics import Route
from provision.rules.rule import Case
from provision.spec import Gpu


@dataclass(frozen=True, slots=True)
class Device:
    """What one or more targets compute on: the values and the routes they were written at."""

    gpu: Gpu
    gpu_route: Route
    cuda: str
    cuda_route: Route

    @property
    def nvidia(self) -> bool:
        """Whether it is a CUDA card."""
        return self.gpu.type not in ("none", "mps")


def devices(case: Case) -> tuple[Device, ...]:
    """Return each pair of gpu and cuda that holds at some target, once."""
    spec, found = case.spec, {}
    for name, target in spec.targets.items():
        own: Route = ("targets", name)
        gpu, gpu_route = (target.gpu, (*own, "gpu")) if target.gpu is not None else (spec.gpu, ("gpu",))
        cuda, cuda_route = (target.cuda, (*own, "cuda")) if target.cuda is not None else (spec.cuda, ("cuda",))
        found[gpu_route, cuda_route] = Device(gpu, gpu_route, cuda, cuda_route)
    return tuple(found.values())
