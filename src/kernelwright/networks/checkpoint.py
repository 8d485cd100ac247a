"""A training run in a file."""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from kernelwright.storage.files import write_whole

__all__ = ["Checkpoint"]


@dataclass(frozen=True)
class Checkpoint:
    """A file that holds a training run at the end of an epoch: tensors and plain data only.

    It is written whole or not at all. ``job`` says whose run it is; the file of another is refused.
    """

    path: Path
    job: str
    seed: int

    @classmethod
    def of(cls, path: str | os.PathLike[str], job: str, seed: int) -> Checkpoint:
        """The file at ``path``, with the seed of the run that it holds, or with ``seed`` for a new run."""
        state = cls(Path(path), job, seed).read()
        return cls(Path(path), job, seed if state is None else state["seed"])

    def write(self, state: dict[str, Any]) -> None:
        """Replace the file."""
        content = io.BytesIO()  # torch has no words for a disk that is full
        torch.save(state | {"job": self.job, "seed": self.seed}, content)
        write_whole(self.path, content.getvalue())

    def read(self) -> dict[str, Any] | None:
        """What was written last, or None where there is no file."""
        if not self.path.exists():
            return None
        try:
            state = torch.load(self.path, weights_only=True)
            job = state["job"]
        except Exception as error:
            raise ValueError(f"{self.path} is no checkpoint of an embedding network: {error}") from error
        if job != self.job:
            raise ValueError(
                f"The checkpoint {self.path} is of another run: the data, the network or the settings were not "
                "the same. Remove it, or name another file."
            )
        return state
