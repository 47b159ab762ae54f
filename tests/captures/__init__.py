"""Pairs of captured environments, each with one cause among harmless differences."""
