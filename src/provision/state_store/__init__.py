"""The storage of the ledger."""

from provision.state_store.local import LocalStore

__all__ = ["LocalStore"]
