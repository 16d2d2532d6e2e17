"""The ordered walk in C++ (`ordered_walk.cpp`), compiled when it is first asked for.

With the platform's compiler, or the one that `CXX` names, into a folder that goes at once.
"""

import ctypes
import os
import shlex
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

__all__ = ["NoCompiler", "OrderedWalk"]

_SOURCE = Path(__file__).with_name("ordered_walk.cpp")
_FLAGS = ("-std=c++17", "-O3", "-DNDEBUG", "-shared", "-fPIC")
_COMPILERS = ("c++", "g++", "clang++")


class NoCompiler(RuntimeError):
    """The rival cannot be compiled: says what is missing or wrong."""


class OrderedWalk:
    """Nodes with *left*, one row each, placed on by best fit in a `std::set`."""

    def __init__(self, left: npt.NDArray[np.int64]) -> None:
        self._library = _library()
        rows = np.ascontiguousarray(left, dtype=np.int64)
        count, self._width = rows.shape
        self._walk = self._library.ordered_walk_new(count, self._width, rows.ctypes.data)
        if not self._walk:
            raise ValueError(f"{self._width} resources; the ordered walk is compiled for 1 to 4")

    def place(
        self, shapes: npt.NDArray[np.int64], wanted: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.int32]:
        """The node of each job in turn, -1 for none; job i wants `shapes[wanted[i]]`."""
        asked = np.ascontiguousarray(shapes, dtype=np.int64)
        numbers = np.ascontiguousarray(wanted, dtype=np.int32)
        if asked.shape[1] != self._width or (len(numbers) and numbers.max() >= len(asked)):
            raise ValueError("shapes of another width than the nodes, or too few")
        node_of = np.empty(len(numbers), dtype=np.int32)
        self._library.ordered_walk_place(
            self._walk,
            len(numbers),
            *(each.ctypes.data for each in (asked, numbers, node_of)),
        )
        return node_of

    def __del__(self) -> None:
        if getattr(self, "_walk", None):
            self._library.ordered_walk_free(self._walk)


@cache
def _library() -> ctypes.CDLL:
    compiler = _compiler()
    with tempfile.TemporaryDirectory(prefix="ordered-walk-") as folder:
        path = Path(folder) / "ordered_walk.so"
        ended = subprocess.run(
            [*compiler, *_FLAGS, str(_SOURCE), "-o", str(path)],
            capture_output=True,
            text=True,
            check=False,
        )
        if ended.returncode:
            first = next(iter(ended.stderr.splitlines()), f"status {ended.returncode}")
            raise NoCompiler(f"{compiler[0]} does not compile {_SOURCE.name}: {first}")
        library = ctypes.CDLL(str(path))  # stays when its file is gone
    size, memory = ctypes.c_ssize_t, ctypes.c_void_p
    library.ordered_walk_new.argtypes = [size, size, memory]
    library.ordered_walk_new.restype = memory
    library.ordered_walk_place.argtypes = [memory, size, memory, memory, memory]
    library.ordered_walk_place.restype = None
    library.ordered_walk_free.argtypes = [memory]
    library.ordered_walk_free.restype = None
    return library


def _compiler() -> list[str]:
    """The command that compiles C++. Raises NoCompiler."""
    named = shlex.split(os.environ.get("CXX", ""))
    if named:
        if shutil.which(named[0]) is None:
            raise NoCompiler(f"CXX={named[0]}: there is no such program")
        return named
    for name in _COMPILERS:
        if found := shutil.which(name):
            return [found]
    raise NoCompiler(
        f"the ordered walk in C++ needs a compiler and there is none of {', '.join(_COMPILERS)}; "
        "install one or name one in CXX"
    )
