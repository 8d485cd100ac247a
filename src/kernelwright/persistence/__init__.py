"""Models in files: ``save`` and ``load``.

A file holds numbers and a description of objects, no code. Loading runs none and imports nothing that the file names: a
file from a stranger is restored as data or refused.

Torch and scikit-learn are imported when a model is written or read, not before: what is no model is refused at once.
"""

from __future__ import annotations

import os
import stat
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kernelwright.errors import ModelFileError
from kernelwright.persistence.archive import DAMAGED, Archive, write_archive
from kernelwright.storage.files import whole_file

if TYPE_CHECKING:
    from torch import nn

__all__ = ["check_model_file", "load", "save"]


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a model to a file, from which :func:`load` makes one that predicts the same to the last bit.

    The file appears whole or not at all.

    Parameters
    ----------
    model : estimator, kernel or feature map
        Any of this library, fitted or not, alone or in a pipeline, a column transformer or another of scikit-learn's
        common estimators. Lists and dictionaries of models work too.
    path : str or path-like

    Notes
    -----
    A torch module of one's own is saved by its numbers; loading needs its architecture, see :func:`load`. A
    ``random_state`` that is a generator is saved with its state: the next draw is the one it would have made. Settings
    that belong to the running program and its disk (``callback``, ``checkpoint``, ``memory``) are left out, with a
    warning. Functions and classes of one's own cannot be saved; the error names the attribute.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import kernelwright as kw
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = kw.EmbeddingClassifier(random_state=0).fit(X[::2], y[::2])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     kw.save(model, Path(folder) / "iris.kw")
    ...     again = kw.load(Path(folder) / "iris.kw")
    >>> bool((again.predict_proba(X) == model.predict_proba(X)).all())
    True
    """
    from kernelwright.persistence.encoding import Encoder

    encoder = Encoder()
    root = encoder.value(model, type(model).__name__)
    for name in encoder.left_out:
        warnings.warn(f"{name} is not part of the model and is not saved: it is None after loading.", stacklevel=2)
    document = {"root": root, "table": encoder.table}
    with whole_file(path) as file:
        write_archive(file, document, encoder.arrays)


def load(path: str | os.PathLike[str], *, module: nn.Module | Sequence[nn.Module] | None = None) -> Any:
    """Read a model that :func:`save` wrote.

    Parameters
    ----------
    path : str or path-like
    module : torch module, or a list of them, default=None
        The architecture of a network (or a kernel) of one's own class, built like the saved one; the file supplies
        its numbers. Layers of ``torch.nn`` in a ``Sequential`` need none. A copy is used.

    Returns
    -------
    estimator, kernel or feature map
        On the CPU, wherever it was when it was saved.

    Raises
    ------
    ModelFileError
        If the file is not a model file, is damaged, or was made by a newer version of the format.
    OSError
        If there is no such file, or it may not be read.

    Notes
    -----
    Loading is safe whatever the file: no code is run, and no more memory is taken than the file is large. Predicting is
    as safe as the source of the file, since the compiled parts of other libraries believe the numbers of a model.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from torch import nn
    >>> import kernelwright as kw
    >>> class Doubled(nn.Module):
    ...     "A network of one's own."
    ...
    ...     def __init__(self, width):
    ...         super().__init__()
    ...         self.layer = nn.Linear(2, width)
    ...
    ...     def forward(self, x):
    ...         return 2.0 * self.layer(x)
    >>> training = kw.networks.Training(max_epochs=2)
    >>> model = kw.EmbeddingNetworkClassifier(Doubled(3), training=training, random_state=0)
    >>> model = model.fit([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0, 1, 1, 0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     kw.save(model, Path(folder) / "xor.kw")
    ...     again = kw.load(Path(folder) / "xor.kw", module=Doubled(3))
    >>> bool((again.transform([[2.0, 3.0]]) == model.transform([[2.0, 3.0]])).all())
    True
    """
    templates = [] if module is None else _templates(module)
    check_model_file(path)  # before torch and scikit-learn are imported for it
    from kernelwright.persistence.decoding import Decoder

    with _opened(path) as archive:
        decoder = Decoder(archive, templates)
        model = decoder.decode(archive.document())
        archive.check_digest()
    if decoder.uses_scikit_learn:
        _warn_of_other_version(archive.manifest.get("scikit-learn"))
    return model


def check_model_file(path: str | os.PathLike[str]) -> None:
    """Check that a file looks like a model, without loading it: what it is, its format and version, its parts.

    Raises
    ------
    ModelFileError, OSError
        As :func:`load` does.
    """
    with _opened(path):
        pass


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[Archive]:
    """Open a model file; whatever is wrong with it, also later, is an error that names the file."""
    try:
        _refuse_what_is_no_file(path)
        with open(path, "rb") as file:
            yield Archive(file)
    except ModelFileError as error:
        raise ModelFileError(f"Cannot load {os.fspath(path)}: {error}.") from error.__cause__
    except OSError as error:
        if error.filename is not None:  # the system's own words, with the name of the file: missing, not readable
            raise
        raise _damage(path, error) from error
    except Exception as error:  # a damaged or forged file can go wrong anywhere
        raise _damage(path, error) from error


def _templates(module: Any) -> list[nn.Module]:
    from torch import nn

    templates = [module] if isinstance(module, nn.Module) else list(module)
    if not all(isinstance(template, nn.Module) for template in templates):
        raise TypeError(f"The 'module' parameter must be a torch module or a list of them. Got {module!r} instead.")
    return templates


def _warn_of_other_version(written_by: Any) -> None:
    import sklearn

    if written_by != sklearn.__version__:
        warnings.warn(
            f"The model was saved with scikit-learn {written_by} and is loaded with {sklearn.__version__}: parts of it "
            "that are scikit-learn's may not work, or work differently. Save it again with this version once checked.",
            stacklevel=3,
        )


def _refuse_what_is_no_file(path: str | os.PathLike[str]) -> None:
    mode = os.stat(path).st_mode
    if not stat.S_ISREG(mode):
        what = "a folder" if stat.S_ISDIR(mode) else "not a regular file"
        raise ModelFileError(f"it is {what}; expected a file written by kernelwright.save")


def _damage(path: str | os.PathLike[str], error: Exception) -> ModelFileError:
    words = " ".join(str(error).split())[:200]
    return ModelFileError(f"Cannot load {os.fspath(path)}: it is damaged ({type(error).__name__}: {words}); {DAMAGED}.")
