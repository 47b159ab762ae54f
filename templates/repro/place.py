"""Looks for what Colab and Vertex AI Workbench leave on their machines. Exit 1 while this is not the place that CASE wants, 0 when it is."""

import os
import sys

CASE = {"CASE": "HERE"}


def maker():
    try:
        with open("/sys/class/dmi/id/product_name", encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return ""


colab = bool(os.environ.get("COLAB_RELEASE_TAG"))
image = any(os.path.exists(place) for place in ("/opt/deeplearning/metadata", "/opt/c2d"))
here = {"colab": colab, "workbench": not colab and (image or maker() == "Google Compute Engine")}
print(f"COLAB_RELEASE_TAG is {'set' if colab else 'not set'}; files of a Workbench image: {image}; the machine is made by {maker() or 'nobody it tells'}")
sys.exit(not here[CASE["place"]])
