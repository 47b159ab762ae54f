"""The only room that touches the outside: disk, processes, uv, and what this machine is."""

from provision.adapters.system import RealSystem

__all__ = ["RealSystem"]
