"""Save and load models: ``save`` and ``load``.

A file holds numbers and a description of objects, but no code. Loading runs no code from the file and imports nothing
that the file names. So a file from an unknown source is either restored as data or rejected.

Torch and scikit-learn are imported only when a model is written or read, so files that are not models fail fast.
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
    """Write a model to a file; :func:`load` restores a model with exactly the same predictions.

    The file is written atomically.

    Parameters
    ----------
    model : estimator, kernel or feature map
        Any object of this library, fitted or not, alone or in a pipeline, a column transformer or another common
        estimator of scikit-learn. Lists and dictionaries of models also work.
    path : str or path-like

    Notes
    -----
    Of your own torch modules only the parameters are saved; loading needs the architecture, see :func:`load`. A
    generator as ``random_state`` is saved with its state, so its next draw is the same. Settings that belong to the
    running program (``callback``, ``checkpoint``, ``memory``) are not saved, with a warning. Your own functions and
    classes cannot be saved; the error names the attribute.

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
        warnings.warn(f"{name} is not part of the model and is not saved. It is None after loading.", stacklevel=2)
    document = {"root": root, "table": encoder.table}
    with whole_file(path) as file:
        write_archive(file, document, encoder.arrays)


def load(path: str | os.PathLike[str], *, module: nn.Module | Sequence[nn.Module] | None = None) -> Any:
    """Read a model that :func:`save` wrote.

    Parameters
    ----------
    path : str or path-like
    module : torch module, or a list of them, default=None
        The architecture of a network (or a kernel) of your own class, built like the saved one; its parameters come
        from the file. Layers of ``torch.nn`` in a ``Sequential`` do not need it. A copy is used.

    Returns
    -------
    estimator, kernel or feature map
        Always on the CPU.

    Raises
    ------
    ModelFileError
        If the file is not a model file, is damaged, or was made by a newer version of the format.
    OSError
        If the file does not exist or cannot be read.

    Notes
    -----
    Loading any file is safe: no code of the file is run, and the memory is limited by the size of the file. Predicting
    is only as safe as the source of the file, because compiled code of other libraries trusts the numbers of a model.

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
    """Check that a file looks like a model, without loading it: its type, format, version and parts.

    Raises
    ------
    ModelFileError, OSError
        As :func:`load` does.
    """
    with _opened(path):
        pass


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[Archive]:
    """Open a model file; every problem with it, also while it is read, becomes an error that names the file."""
    try:
        _refuse_what_is_no_file(path)
        with open(path, "rb") as file:
            yield Archive(file)
    except ModelFileError as error:
        raise ModelFileError(f"Cannot load {os.fspath(path)}: {error}.") from error.__cause__
    except OSError as error:
        if error.filename is not None:  # the system's message has the file name already: missing, not readable
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
            f"The model was saved with scikit-learn {written_by} and is loaded with {sklearn.__version__}. Its parts "
            "from scikit-learn may not work, or work differently. Check it, then save it again with this version.",
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
