"""A scheduler over HTTP. Needs the extra `server`."""

from pyresched.api.app import create_app

__all__ = ["create_app"]
