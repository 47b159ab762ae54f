"""Colab targets to try things on: the spec and lock of tests/golden/lock-restart, with fields of
the spec changed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from provision.lock import loads
from provision.spec import Spec
from provision.targets import TargetContext

GOLDEN = Path(__file__).parents[1] / "golden/lock-restart"
FOLDER = Path("/project/.provision")


def place(
    target: str = "colab",
    folder: Path = FOLDER,
    stem: str = "spec",
    colab: dict[str, Any] | None = None,
    **fields: Any,
) -> TargetContext:
    """Return a target of the golden spec: `colab` on top of a runtime's packages, `apart` beside
    them.
    """
    document = {**yaml.safe_load((GOLDEN / "spec.yaml").read_text(encoding="utf-8")), **fields}
    document["targets"] = {
        **document["targets"],
        target: {**document["targets"][target], **(colab or {})},
    }
    lock = loads((GOLDEN / "spec.lock").read_text(encoding="utf-8"), "spec.lock")
    return TargetContext(
        Spec.model_validate(document).for_target(target), target, stem, folder, lock, "linux-x86_64"
    )
