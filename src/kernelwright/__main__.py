"""The entry point of ``python -m kernelwright`` and of the command ``kernelwright``."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

from kernelwright.numerics.memory import Room, in_words, lacked_memory, room_below_limits

# Bytes that Python, scikit-learn, pandas and other libraries take when they are loaded.
BESIDES_TORCH = Room(addresses=560 * 2**20, data=350 * 2**20)


def main() -> None:
    """Run the command line, if the memory limits of this process allow its libraries."""
    room, needed = room_below_limits(), _taken_by_loading()
    if any(left < least for left, least in zip(room, needed, strict=True)):
        _refuse(room, needed)  # otherwise torch would abort
    if room.addresses < 2 * needed.addresses:  # each thread needs addresses; without them the process would end
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from kernelwright.cli import main as run

        run()
    except (ImportError, MemoryError) as error:
        if isinstance(error, ImportError) and not lacked_memory(error):
            raise
        _refuse(room, needed)


def _taken_by_loading() -> Room:
    """Return the memory that the program itself takes; most addresses are for torch, depending on its build."""
    spec = find_spec("torch")
    folder = Path(spec.origin).parent / "lib" if spec is not None and spec.origin is not None else Path()
    libraries = sum(path.stat().st_size for path in folder.glob("*.so*"))
    return BESIDES_TORCH._replace(addresses=BESIDES_TORCH.addresses + libraries)


def _refuse(room: Room, needed: Room) -> None:
    names = {"ulimit -v": room.addresses / needed.addresses, "ulimit -d": room.data / needed.data}
    which = min(names, key=names.__getitem__)
    left, least = (room.addresses, needed.addresses) if which == "ulimit -v" else (room.data, needed.data)
    sys.stderr.write(
        f"kernelwright: The memory limit of this process ({which}) leaves {in_words(left)}, but the program alone "
        f"needs {in_words(least)} or more. Raise the limit.\n"
    )
    sys.stderr.flush()
    os._exit(2)  # partly loaded libraries may crash in a normal exit


if __name__ == "__main__":
    main()
