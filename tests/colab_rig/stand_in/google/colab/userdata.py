"""The secrets of a notebook: in the stand-in, those of the file that COLAB_RIG_SECRETS names;
without it nobody answers, as outside the browser.
"""

import json
import os
from pathlib import Path


class NotebookAccessError(Exception):
    """The notebook was not given access to the secret."""

    def __init__(self, key):
        super().__init__(f"Notebook does not have access to secret {key}")


class SecretNotFoundError(Exception):
    """There is no such secret."""

    def __init__(self, key):
        super().__init__(f"Secret {key} does not exist.")


class TimeoutException(Exception):
    """Nobody answered."""

    def __init__(self, key):
        super().__init__(
            f"Requesting secret {key} timed out. Secrets can only be fetched when running "
            "from the Colab UI."
        )


def get(key):
    """Return a secret by name."""
    if not key or not isinstance(key, str):
        raise ValueError("Please enter a valid secret name")
    kept = os.environ.get("COLAB_RIG_SECRETS")
    if not kept:
        raise TimeoutException(key)
    secrets = json.loads(Path(kept).read_text(encoding="utf-8"))
    if key not in secrets:
        raise SecretNotFoundError(key)
    if secrets[key] is None:
        raise NotebookAccessError(key)
    return secrets[key]
