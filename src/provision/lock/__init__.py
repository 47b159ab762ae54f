"""Every choice made: one set of versions for every target, with a hash for every file."""

# Not here: `asked` and `resolve`, which need the model of the language. `lock --check` does without it where it can.
from provision.lock.model import Chosen, CondaPackage, Environment, File, Lock, Package, digest_of, dumps, loads, sealed
from provision.lock.written import written_of

__all__ = ["Chosen", "CondaPackage", "Environment", "File", "Lock", "Package", "digest_of", "dumps", "loads", "sealed", "written_of"]
