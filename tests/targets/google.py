"""Google Cloud as a dictionary, for tests of the kind workbench: instances by full name, objects by
address, and the keys that the service adds by itself.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from provision.effects import google as effects
from provision.effects import vertex

IMAGE = "workbench-instances-2603-20261004-2157-rc0"
SPEC: dict[str, Any] = {
    "kind": "workbench",
    "project": "my-project",
    "zones": ["us-central1-a"],
    "image": IMAGE,
    "bucket": "gs://my-bucket/p",
}


@dataclass
class FakeCloud:
    """What a CloudReader answers, and what the effects on Google Cloud do to it."""

    found: dict[str, dict[str, Any]] = field(default_factory=dict)
    objects: dict[str, bytes] = field(default_factory=dict)
    attributes: dict[str, dict[str, str]] = field(default_factory=dict)
    images: tuple[dict[str, str], ...] = ()
    rows: tuple[dict[str, Any], ...] | None = None
    cards: tuple[dict[str, Any], ...] | None = None
    done: list[str] = field(default_factory=list)
    made_templates: dict[str, dict[str, Any]] = field(default_factory=dict)

    def instance(self, name: str) -> Mapping[str, Any] | None:
        return copy.deepcopy(self.found.get(name))

    def instances(self, project: str) -> tuple[Mapping[str, Any], ...]:
        return tuple(
            copy.deepcopy(one)
            for name, one in self.found.items()
            if name.startswith(f"projects/{project}/")
        )

    def template(self, name: str) -> Mapping[str, Any] | None:
        return copy.deepcopy(self.made_templates.get(name))

    def templates(self, project: str, region: str) -> tuple[Mapping[str, Any], ...]:
        parent = f"projects/{project}/locations/{region}/"
        named = self.made_templates.items()
        return tuple(copy.deepcopy(one) for name, one in named if name.startswith(parent))

    def execution(self, name: str) -> Mapping[str, Any] | None:
        return None

    def executions(self, project: str, region: str) -> tuple[Mapping[str, Any], ...]:
        return ()

    def config(self, project: str, zone: str) -> Mapping[str, Any] | None:
        return {"availableImages": list(self.images)} if self.images else None

    def guest_attributes(self, name: str, namespace: str) -> dict[str, str] | None:
        return dict(self.attributes.get(name, {}))

    def serial_output(self, name: str, start: int) -> tuple[str, int]:
        return "", start

    def console(self, name: str) -> str:
        return ""

    def object(self, uri: str, limit: int) -> bytes | None:
        return self.objects.get(uri)

    def object_uris(self, prefix: str) -> tuple[str, ...] | None:
        return tuple(uri for uri in self.objects if uri.startswith(prefix))

    def bucket(self, name: str) -> Mapping[str, Any] | None:
        return None

    def quotas(self, project: str, region: str) -> tuple[Mapping[str, Any], ...] | None:
        return self.rows

    def job_quotas(self, project: str) -> Mapping[str, Mapping[str, int]] | None:
        return None

    def image(self, image: str) -> effects.ImageDescription:
        return effects.ImageDescription(unknown="it is not requested")

    def accelerator_types(self, project: str, zone: str) -> tuple[Mapping[str, Any], ...] | None:
        return self.cards

    def perform(self, effect: object) -> None:
        self.done.append(type(effect).__name__)
        match effect:
            case effects.UploadObjects():
                self.objects.update(effect.objects)
            case effects.CreateInstance():
                parent = f"projects/{effect.project}/locations/{effect.zones[0]}"
                name = f"{parent}/instances/{effect.instance}"
                self.found[name] = with_keys_of_the_service(
                    {**copy.deepcopy(dict(effect.body)), "name": name, "state": "ACTIVE"}
                )
            case effects.UpdateInstance():
                merge(self.found[effect.name], effect.body)
            case effects.ResizeDisk():
                disk = self.found[effect.name]["gceSetup"][
                    "bootDisk" if effect.disk == "bootDisk" else "dataDisks"
                ]
                (disk[0] if isinstance(disk, list) else disk)["diskSizeGb"] = effect.size_gb
            case effects.StopInstance():
                self.found[effect.name]["state"] = "STOPPED"
            case effects.StartInstance():
                self.found[effect.name]["state"] = "ACTIVE"
            case effects.DeleteInstance():
                self.found.pop(effect.name, None)
            case vertex.CreateTemplate():
                body = {**copy.deepcopy(dict(effect.body)), "name": effect.name}
                body.pop("eucConfig")
                self.made_templates[effect.name] = body
            case vertex.DeleteTemplate():
                self.made_templates.pop(effect.name, None)
            case effects.DeleteObjects():
                self.objects = {
                    uri: content
                    for uri, content in self.objects.items()
                    if not uri.startswith(effect.prefix)
                }
            case _:
                raise AssertionError(effect)


def with_keys_of_the_service(instance: dict[str, Any]) -> dict[str, Any]:
    """Return an instance with what the service adds, and without what it leaves out."""
    setup = instance["gceSetup"]
    instance["labels"] |= {
        "consumer-project-id": "tenant",
        "notebooks-product": "workbench-instances",
        "resource-name": "x",
    }
    setup["metadata"] |= {
        "version": "1",
        "resource-url": "https://x",
        "proxy-mode": "service_account",
        "title": "T",
        "framework": "PyTorch",
    }
    setup["tags"] = [*setup.get("tags", []), "deeplearning-vm", "notebook-instance"]
    setup["shieldedInstanceConfig"] = {
        key: value for key, value in setup["shieldedInstanceConfig"].items() if value
    }
    setup["vmImage"] = {"project": "cloud-notebooks-managed", "family": "workbench-instances"}
    setup["bootDisk"].pop("diskType")
    instance |= {
        "id": "1",
        "healthInfo": {"x": "1"},
        "createTime": "2026-01-01T00:00:00Z",
        "instanceOwners": [],
    }
    return instance


def merge(instance: dict[str, Any], body: Mapping[str, Any]) -> None:
    for key, value in body.items():
        if key in ("labels", "metadata"):
            instance.setdefault(key, {}).update(value)
            instance[key] = {name: text for name, text in instance[key].items() if text}
        elif isinstance(value, Mapping) and key == "gceSetup":
            merge(instance[key], value)
        else:
            instance[key] = copy.deepcopy(value)
