"""Every choice made: one set of versions for every target, with a hash for every file."""

from provision.lock.asked import asked_of, differences, unavailable
from provision.lock.model import Chosen, Environment, File, Lock, Package, digest_of, dumps, loads
from provision.lock.resolve import resolve

__all__ = ["Chosen", "Environment", "File", "Lock", "Package", "asked_of", "differences", "digest_of", "dumps", "loads", "resolve", "unavailable"]
