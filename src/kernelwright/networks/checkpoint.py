"""Checkpoint files of training runs."""

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

    It is written atomically. ``job`` identifies the run; the file of another run is rejected with an error.
    """

    path: Path
    job: str
    seed: int

    @classmethod
    def of(cls, path: str | os.PathLike[str], job: str, seed: int) -> Checkpoint:
        """Return the checkpoint at ``path``, with the seed of the run in the file, or ``seed`` for a new run."""
        state = cls(Path(path), job, seed).read()
        return cls(Path(path), job, seed if state is None else state["seed"])

    def write(self, state: dict[str, Any]) -> None:
        """Replace the file."""
        content = io.BytesIO()  # torch raises no clear error when the disk is full
        torch.save(state | {"job": self.job, "seed": self.seed}, content)
        write_whole(self.path, content.getvalue())

    def read(self) -> dict[str, Any] | None:
        """Return the state that was written last, or None if there is no file."""
        if not self.path.exists():
            return None
        try:
            state = torch.load(self.path, weights_only=True)
            job = state["job"]
        except Exception as error:
            raise ValueError(f"{self.path} is not a checkpoint of an embedding network: {error}") from error
        if job != self.job:
            raise ValueError(
                f"The checkpoint {self.path} belongs to another run: the data, the network or the settings were "
                "different. Remove it, or use another file."
            )
        return state
