"""The program on a Workbench instance: sets it up as a document declares, and reports.

Standard library only, Python 3.10 or newer.
"""
