"""Programs that live: they own clocks, threads and sockets."""

from pyresched.service.loop import Executor, Service

__all__ = ["Executor", "Service"]
