"""Requests to the front end, which may answer with an error."""


class MessageError(Exception):
    """The front end answered with an error."""
