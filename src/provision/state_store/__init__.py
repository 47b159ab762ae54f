"""Where the ledger is kept."""

from provision.state_store.local import LocalStore

__all__ = ["LocalStore"]
