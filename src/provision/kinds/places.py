"""Places that a file can be checked for without a spec, and the measurements of this machine."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from provision.facts import Card


class Machine(NamedTuple):
    """What was measured of this machine.

    Args:
        python: The Python that a person uses here as major.minor, such as "3.12"; "" if unknown.
        platform: Such as "linux-x86_64".
        gpus: The GPUs by their names in the driver; None without nvidia-smi.
        driver: Version of the NVIDIA driver; "" without one.
        glibc: Version of the C library; "" if it is another one.
        as_of: The day, such as "2026-11-20".
        python_path: The folder of that Python's environment, or its program; "" if unknown.
    """

    python: str
    platform: str
    gpus: tuple[str, ...] | None
    driver: str
    glibc: str
    as_of: str
    python_path: str = ""


class Place(NamedTuple):
    """A machine to check files for: a target with the GPU, the Python and the platform it has.

    Args:
        name: Kind and card, such as "colab-t4"; with a runtime or an image, "colab-t4@2026.07".
        description: One line for people.
        target: The fields of the target in a spec.
        gpu: The `gpu` of a spec, such as "T4" or "none".
        python: The Python of the machine as major.minor; "" if it is not known.
        platform: The platform; "" for the default of a spec.
        torch: The torch that the machine brings; "" for none.
        is_default: True if files are checked for it if no place is named.
        is_this_machine: True for this machine, which is always a default.
    """

    name: str
    description: str
    target: Mapping[str, Any]
    gpu: str
    python: str
    platform: str = ""
    torch: str = ""
    is_default: bool = False
    is_this_machine: bool = False

    @property
    def base(self) -> str:
        """The name without runtime or image."""
        return self.name.partition("@")[0]

    @property
    def version(self) -> str:
        """The runtime or image that the name names; "" if it names none."""
        return self.name.partition("@")[2]


def place_word(card: Card | None) -> str:
    """Return the word for a card in the names of places: "t4", "a100", "a100-80gb", "cpu".

    The first size of a card has no size in its word: A100 is an alias of A100-40GB.
    """
    if card is None:
        return "cpu"
    aliases = [alias for alias in card.aliases if card.name.startswith(alias)]
    return (aliases or [card.name])[0].lower()
