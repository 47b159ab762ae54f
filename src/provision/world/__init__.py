"""The only room that touches the outside: disk, processes, uv, and what this machine is."""

from provision.world.machine import RealSystem

__all__ = ["RealSystem"]
