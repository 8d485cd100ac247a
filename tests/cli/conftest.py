"""Tables on disk and fitted models that many command line tests share; each start of Python takes seconds."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from kernelwright.cli import run


def iris_frame():
    """Return iris with an identifier, a category, missing values and a constant column."""
    bunch = load_iris(as_frame=True)
    frame = bunch.data.set_axis(["sepal_length", "sepal_width", "petal_length", "petal_width"], axis=1)
    rng = np.random.default_rng(0)
    frame.insert(0, "id", [f"{k:03d}" for k in range(1, 151)])
    frame["town"] = rng.choice(["Bonn", "Ulm", "Köln"], 150)
    frame["fixed"] = 1
    frame["species"] = bunch.target_names[bunch.target]
    frame = frame.sample(frac=1, random_state=0).reset_index(drop=True)
    frame.loc[3, "sepal_width"] = np.nan
    frame.loc[5, "town"] = None
    return frame


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """Write tables and models learned from them, and return their paths."""
    folder = tmp_path_factory.mktemp("files")
    frame = iris_frame()
    frame[:90].to_csv(folder / "train.csv", index=False)
    frame[90:].to_csv(folder / "test.csv", index=False)
    X = np.random.default_rng(1).normal(size=(40, 2))
    names = [f"object {k}" for k in range(40)]
    objects = pd.DataFrame(X, columns=["height", "weight"])
    objects.insert(0, "name", names)
    objects.to_csv(folder / "objects.csv", index=False)
    distances = np.linalg.norm(X[:, None] - X, axis=-1)
    pd.DataFrame(-distances, index=names, columns=names).to_csv(folder / "similarities.csv")
    found = SimpleNamespace(
        folder=folder,
        train=str(folder / "train.csv"),
        test=str(folder / "test.csv"),
        model=str(folder / "model.kw"),
        objects=str(folder / "objects.csv"),
        similarities=str(folder / "similarities.csv"),
        kernel=str(folder / "kernel.kw"),
        frame=frame,
        distances=distances,
    )
    assert run(["fit", found.train, "--target", "species", "--folds", "2", "-o", found.model]) == 0
    assert run(["learn-kernel", found.objects, found.similarities, "-o", found.kernel]) == 0
    return found
