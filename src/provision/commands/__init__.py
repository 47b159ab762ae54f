"""The use cases, one file a verb, each told in one breath; nothing here prints or exits."""
