"""Data sets by name, loaded from the first source that has them."""

from __future__ import annotations

import os
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kernelwright.storage.files import whole_file

__all__ = ["DataSetNotFoundError", "load", "names"]


class DataSetNotFoundError(FileNotFoundError):
    """A data set was found in none of the places searched; the message lists them."""


@dataclass(frozen=True)
class Source:
    """The known size of a data set, and its sources other than the data folder."""

    n_rows: int
    n_features: int
    n_classes: int
    in_sklearn: str | None = None
    openml_id: int | None = None


SOURCES = {
    "australian": Source(690, 14, 2, openml_id=40981),
    "banknote": Source(1372, 4, 2, openml_id=1462),
    "covtype": Source(581012, 54, 7, openml_id=1596),
    "digits": Source(1797, 64, 10, in_sklearn="load_digits"),
    "ecoli": Source(336, 7, 8, openml_id=39),
    "fertility": Source(100, 9, 2, openml_id=1473),
    "guide1": Source(3089, 4, 2),
    "guide1t": Source(4000, 4, 2),
    "heart": Source(270, 13, 2, openml_id=53),
    "ijcnn1_test": Source(91701, 22, 2),
    "ijcnn1_train": Source(49990, 22, 2),
    "iris": Source(150, 4, 3, in_sklearn="load_iris"),
    "mnist": Source(70000, 784, 10, openml_id=554),
    "promoters": Source(106, 1, 2),
    "robot": Source(5456, 24, 4, openml_id=1497),
    "segment": Source(2310, 19, 7, openml_id=40984),
    "sonar": Source(208, 60, 2, openml_id=40),
    "splice": Source(3190, 1, 3),
    "wdbc": Source(569, 30, 2, in_sklearn="load_breast_cancer"),
    "wine": Source(178, 13, 3, in_sklearn="load_wine"),
    "yeast": Source(1484, 8, 10, openml_id=181),
}


def names() -> list[str]:
    """Return the names that :func:`load` knows, apart from files in the data folder."""
    return sorted(SOURCES)


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Load the rows and integer labels of a data set.

    The data set is searched for in the folder named by the environment variable ``KERNELWRIGHT_DATA`` (a file
    ``NAME.npz`` with arrays X and y), in scikit-learn, in the cache (``KERNELWRIGHT_CACHE``, or ``kernelwright`` in the
    user's cache folder), then on OpenML, where scikit-learn compares the checksum. With ``KERNELWRIGHT_OFFLINE=1`` the
    network is never used. The 10,000 test images of "mnist" come last.

    Parameters
    ----------
    name : str

    Returns
    -------
    X : ndarray of shape (n_rows, n_features), or (n_rows,) for strings
    y : ndarray of int

    Examples
    --------
    >>> from kernelwright import datasets
    >>> X, y = datasets.load("iris")
    >>> X.shape, y.max()
    ((150, 4), np.int64(2))
    """
    looked = []
    folder = os.environ.get("KERNELWRIGHT_DATA")
    looked.append(f"the data folder {folder}" if folder else "a data folder (KERNELWRIGHT_DATA is not set)")
    if folder and (path := Path(folder) / f"{name}.npz").is_file():
        return _read(path)
    source = SOURCES.get(name)
    if source is not None and source.in_sklearn:
        from sklearn import datasets as sklearn_datasets

        X, y = getattr(sklearn_datasets, source.in_sklearn)(return_X_y=True)
        return X, y.astype(np.int64)
    cached = _cache_folder() / f"{name}.npz"
    looked.append(f"the cache {cached.parent}")
    if cached.is_file():
        return _read(cached)
    if source is None or source.openml_id is None:
        raise DataSetNotFoundError(f"No data set {name!r} in {' or '.join(looked)}. Known names: {', '.join(names())}.")
    if os.environ.get("KERNELWRIGHT_OFFLINE", "0") not in ("", "0"):
        raise DataSetNotFoundError(
            f"No data set {name!r} in {' or '.join(looked)}, and KERNELWRIGHT_OFFLINE is set, so OpenML (number "
            f"{source.openml_id}) was not asked."
        )
    try:
        X, y = _ask_openml(source)
    except Exception as error:
        raise DataSetNotFoundError(
            f"No data set {name!r} in {' or '.join(looked)}, and OpenML (number {source.openml_id}) could not provide "
            f"it: {error}"
        ) from error
    try:
        _write(cached, X, y)
    except OSError as error:  # a home folder that is read-only, full or missing: the data are loaded anyway
        warnings.warn(f"The data set {name!r} could not be written to the cache: {error}", stacklevel=2)
    return X, y


def _read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    with np.load(path, allow_pickle=False) as file:
        if "X_train" in file:
            X, y = (np.concatenate([file[f"{part}_train"], file[f"{part}_test"]]) for part in ("X", "y"))
            return X, y.astype(np.int64)
        return file["X"], file["y"]


def _ask_openml(source: Source) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import fetch_openml

    frame = fetch_openml(data_id=source.openml_id, as_frame=False, parser="liac-arff")
    X, y = np.asarray(frame.data, dtype=np.float64), np.unique(frame.target, return_inverse=True)[1]
    shape = (*X.shape, int(y.max()) + 1)
    if shape != (source.n_rows, source.n_features, source.n_classes):
        raise ValueError(f"it has rows, features and classes {shape}, which is not what was expected")
    return X, y


def _cache_folder() -> Path:
    if "KERNELWRIGHT_CACHE" in os.environ:
        return Path(os.environ["KERNELWRIGHT_CACHE"])
    if "XDG_CACHE_HOME" in os.environ:
        return Path(os.environ["XDG_CACHE_HOME"]) / "kernelwright"
    try:
        return Path.home() / ".cache" / "kernelwright"
    except RuntimeError:  # the user has no home folder
        return Path(tempfile.gettempdir()) / f"kernelwright-{os.getpid()}"


def _write(path: Path, X: np.ndarray, y: np.ndarray) -> None:
    """Write the file atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as file:
        np.savez_compressed(file, X=X, y=y)
