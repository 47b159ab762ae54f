"""The use cases, one file for each command; nothing here prints or exits."""
