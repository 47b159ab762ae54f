"""What the scripts that remake fact tables share: the package index, reading parts of wheels, and
tables that keep their layout.
"""
