"""Where the ledger is kept."""

from provision.stores.local import LocalStore

__all__ = ["LocalStore"]
