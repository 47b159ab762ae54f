"""A kind of target outside the package: machines that are folders behind a service on loopback."""

from dataclasses import replace

from provision.kinds import REGISTRY as OWN_REGISTRY
from tests.folder_kind.kind import Folder

REGISTRY = replace(OWN_REGISTRY, kinds=(*OWN_REGISTRY.kinds, Folder()))
"""The kinds of the package, and this one."""
