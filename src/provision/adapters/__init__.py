"""The only package that touches the outside: disk, processes, uv, services."""

from provision.adapters.system import RealSystem

__all__ = ["RealSystem"]
