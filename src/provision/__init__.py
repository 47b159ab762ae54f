"""A declarative environment provisioner for machine learning."""

__version__ = "0.1.0"
