"""The only room that touches the outside: disk, processes, uv, and what this machine is."""

from provision.world.machine import Machine

__all__ = ["Machine"]
