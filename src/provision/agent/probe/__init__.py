"""The probe: measures an environment, judges it against expectations, writes a report.

Standard library only.
"""
