"""Fits from files, chunks and memory-mapped arrays: as in memory, and as before if they were killed."""

import json
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from kernelwright import EmbeddingClassifier, EmbeddingRegressor
from kernelwright.embedding import TrainingSet
from kernelwright.embedding.tree import solve_tree
from kernelwright.features import RandomFourier
from kernelwright.inputs import ChunkedRows, ParquetRows, blocks, parquet_rows, sources
from kernelwright.inputs.targets import ClassTargets
from kernelwright.learning import Auto
from kernelwright.solvers import Exact, Tree, buckets

pytest.importorskip("pyarrow")

N, QUICK = 2500, {"solver": Tree(200, trees=2), "learn": Auto(max_iter=5), "random_state": 0}


@pytest.fixture(autouse=True, scope="module")
def few_rows_are_many():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "GATHERED_ROWS", 600)
        patch.setattr(sources, "PART_ROWS", 500)
        patch.setattr(parquet_rows, "PART_ROWS", 500)
        yield


def made_up(n=N, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 3))
    y = np.where(np.sin(2 * X[:, 0]) * X[:, 1] > 0, "yes", "no")
    return X, y


def frame_of(X, y):
    return pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y)


def write(frame, folder, n_files=3):
    for number, rows in enumerate(np.array_split(np.arange(len(frame)), n_files)):
        frame.iloc[rows].to_parquet(folder / f"part-{number}.parquet", index=False)


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "rows"
    path.mkdir()
    write(frame_of(*made_up()), path)
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory, few_rows_are_many):
    folder = tmp_path_factory.mktemp("rows")
    write(frame_of(*made_up()), folder)
    return EmbeddingClassifier(**QUICK).fit(ParquetRows(folder, target="y"))


def test_the_answers_are_those_of_the_same_partition_in_memory(model):
    X, y = made_up()
    new = torch.from_numpy(made_up(500, 1)[0])
    embedding = model.embedding_
    points = embedding.encode(X)
    targets = ClassTargets(2).encode((y == "yes").astype(int))
    prior = ClassTargets(2).prior(targets, torch.ones(N, dtype=torch.float64))
    rows = TrainingSet.of(points, targets, prior=prior)
    with torch.no_grad():
        solved = [solve_tree(embedding.kernel, rows, embedding.ridge, each) for each in embedding.trees.partitions]
        V = embedding.trees.coefficients(solved)
        expected, _ = embedding.trees.outputs(embedding.kernel, points, V, embedding.encode(new.numpy()))
    found, _ = embedding.outputs(new.numpy(), embedding.encode(new.numpy()))
    torch.testing.assert_close(found - embedding.prior, expected, atol=1e-8, rtol=0)
    assert sum(int(each.starts[-1]) for each in embedding.trees.partitions) == 2 * N


def test_new_rows_are_answered_as_well_as_by_a_fit_in_memory(model):
    X, y = made_up()
    new, truth = made_up(2000, 1)
    here = EmbeddingClassifier(**QUICK).fit(frame_of(X, y).drop(columns="y"), y)
    new = frame_of(new, truth).drop(columns="y")
    assert model.score(new, truth) > here.score(new, truth) - 0.01 > 0.94
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]


def test_all_sources_of_the_same_rows_have_the_same_answers(model, folder, tmp_path):
    X, y = made_up()
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    chunks = [(X[own], y[own]) for own in np.array_split(np.arange(N), 4)]
    new = made_up(200, 1)[0]
    expected = model.predict_proba(frame_of(new, 0).drop(columns="y"))
    for given in ((mapped, y), (ChunkedRows(chunks),), (ChunkedRows(lambda: iter(chunks)),)):
        found = EmbeddingClassifier(**QUICK).fit(*given)
        np.testing.assert_allclose(found.predict_proba(new), expected, atol=1e-8)
    found = EmbeddingClassifier(**QUICK).fit(str(folder / "*.parquet"), "y")
    np.testing.assert_array_equal(found.predict_proba(frame_of(new, 0).drop(columns="y")), expected)


def test_predictions_of_a_source_are_those_of_its_parts(model, folder):
    source = ParquetRows(folder, columns=["a", "b", "c"])
    found = model.predict_proba(source)
    assert len(found) == N
    X = pd.concat([part.X for part in source.parts()])
    np.testing.assert_allclose(found, model.predict_proba(X), atol=1e-12)


def test_a_small_source_is_fitted_as_in_memory(monkeypatch, folder):
    monkeypatch.setattr(blocks, "GATHERED_ROWS", 10_000)
    X, y = made_up()
    here = EmbeddingClassifier(**QUICK).fit(frame_of(X, y).drop(columns="y"), y)
    there = EmbeddingClassifier(**QUICK).fit(ParquetRows(folder, target="y"))
    new = frame_of(*made_up(50, 1)).drop(columns="y")
    np.testing.assert_array_equal(there.predict_proba(new), here.predict_proba(new))


def test_columns_of_all_kinds_with_gaps_and_a_rare_class(tmp_path):
    """The one gap of a column, and a class of three rows, are in no random sample: they are looked for."""
    X, y = made_up()
    rng = np.random.default_rng(1)
    town = np.where(y == "yes", rng.choice(["Ulm", "Bonn"], N), rng.choice(["Bonn", "Rome", None], N))
    y = y.astype(object)
    y[[1800, 2100, 2499]] = "rare"
    X[2400, 2] = np.nan
    frame = frame_of(X, y).assign(town=town, day=pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(N) % 365, "D"))
    frame.loc[frame.index % 7 == 0, "a"] = np.nan
    write(frame, tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = EmbeddingClassifier(**QUICK).fit(ParquetRows(tmp_path, target="y"))
    assert model.classes_.tolist() == ["no", "rare", "yes"]
    kinds = {column.name: column.kind for column in model.columns_}
    assert kinds == {"a": "number", "b": "number", "c": "number", "town": "category", "day": "date"}
    new = frame.drop(columns="y").iloc[::-1]
    p = model.predict_proba(new)
    assert np.isfinite(p).all()
    here = EmbeddingClassifier(**QUICK).fit(frame.drop(columns="y"), y)
    assert np.mean(model.predict(new) == y[::-1]) > np.mean(here.predict(new) == y[::-1]) - 0.02


def test_gaps_of_numbers_outside_the_sample_are_gaps(tmp_path):
    X, y = made_up()
    X[2400, 2] = X[2405, 2] = np.nan  # in no sample of 600 rows, perhaps
    model = EmbeddingClassifier(**QUICK).fit(ChunkedRows([(X[:1500], y[:1500]), (X[1500:], y[1500:])]))
    assert np.isfinite(model.predict_proba(X[2390:2410])).all()
    assert model.score(X, y) > 0.95


def test_weights_count_as_in_memory(tmp_path):
    X, y = made_up()
    weights = np.where(np.arange(N) % 3, 1.0, 0.0)
    write(frame_of(X, y).assign(w=weights), tmp_path)
    model = EmbeddingClassifier(**QUICK).fit(ParquetRows(tmp_path, target="y", weight="w"))
    kept = [(X[own][weights[own] > 0], y[own][weights[own] > 0]) for own in np.array_split(np.arange(N), 2)]
    other = EmbeddingClassifier(**QUICK).fit(ChunkedRows(kept))
    new = made_up(100, 1)[0]
    found = model.predict_proba(pd.DataFrame(new, columns=["a", "b", "c"]))
    np.testing.assert_allclose(found, other.predict_proba(new), atol=1e-8)


def test_numbers_are_predicted_as_well_as_in_memory(tmp_path):
    X, _ = made_up()
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * np.random.default_rng(1).normal(size=N)
    y[17] = np.nan
    write(frame_of(X, y), tmp_path)
    with pytest.warns(UserWarning, match="1 rows have no target"):
        model = EmbeddingRegressor(**QUICK).fit(ParquetRows(tmp_path, target="y"))
    new = made_up(1000, 1)[0]
    truth = np.sin(2 * new[:, 0]) + new[:, 1]
    new = pd.DataFrame(new, columns=["a", "b", "c"])
    here = EmbeddingRegressor(**QUICK).fit(pd.DataFrame(np.delete(X, 17, 0), columns=["a", "b", "c"]), np.delete(y, 17))
    assert model.score(new, truth) > here.score(new, truth) - 0.005 > 0.97
    low, high = model.interval(new, 0.9).T
    noisy = truth + 0.1 * np.random.default_rng(2).normal(size=1000)
    assert 0.85 < np.mean((low <= noisy) & (noisy <= high)) < 0.95


def test_explicit_features_are_summed_up(folder):
    model = EmbeddingClassifier(features=RandomFourier(50), scale="standard", random_state=0)
    model.fit(ParquetRows(folder, target="y"))
    X, y = made_up(500, 1)
    assert model.score(frame_of(X, y).drop(columns="y"), y) > 0.9


@pytest.mark.parametrize(
    ("options", "arguments", "words"),
    [
        ({}, {"y": np.zeros(N)}, "The targets and weights of ParquetRows are its own"),
        ({}, {"groups": np.zeros(N)}, "'groups' is not supported for .* files and chunks"),
        ({"solver": Exact()}, {}, "needs all rows in memory"),
    ],
)
def test_what_cannot_be_done_is_said(folder, options, arguments, words):
    with pytest.raises(ValueError, match=words):
        EmbeddingClassifier(**(QUICK | options)).fit(ParquetRows(folder, target="y"), **arguments)


def test_a_source_without_target_or_a_path_without_name_is_an_error(folder):
    with pytest.raises(ValueError, match=r"Name the column to learn"):
        EmbeddingClassifier().fit(ParquetRows(folder))
    with pytest.raises(ValueError, match=r"name their column"):
        EmbeddingClassifier().fit(str(folder), np.zeros(3))
    with pytest.raises(ValueError, match=r"A checkpoint is for rows that are read from files"):
        EmbeddingClassifier().fit([[1.0], [2.0]], [0, 1], checkpoint="folder")


# Checkpoints ---------------------------------------------------------------------------------------------

SCRIPT = """
import sys, time
sys.path.insert(0, {root!r})
from kernelwright import EmbeddingClassifier
from kernelwright.inputs import ParquetRows, blocks
from kernelwright.solvers import buckets
from tests.estimators.test_sources import QUICK
blocks.GATHERED_ROWS, buckets.BUCKET_LEAVES = 600, 1
solve = buckets.BucketSolver.solve
def slowly(*arguments) -> buckets.SolvedBucket:
    time.sleep(0.5)
    return solve(*arguments)
buckets.BucketSolver.solve = slowly
model = EmbeddingClassifier(**(QUICK | dict(random_state=None)))
model.fit(ParquetRows({rows!r}, target="y"), checkpoint={checkpoint!r})
"""


@pytest.mark.slow
def test_a_killed_fit_goes_on(folder, tmp_path, monkeypatch):
    """Its seed is random, so nothing could go on without the checkpoint."""
    checkpoint, root = tmp_path / "kept", Path(__file__).parents[2]
    script = SCRIPT.format(root=str(root), rows=str(folder), checkpoint=str(checkpoint))
    run = subprocess.Popen([sys.executable, "-c", script])
    while not list(checkpoint.glob("solved-*-00000[3-9].npz")):
        assert run.poll() is None, "the fit ended before it could be killed"
        time.sleep(0.05)
    run.kill()
    run.wait()
    before = {each.name: each.stat().st_mtime_ns for each in checkpoint.glob("solved-*")}
    monkeypatch.setattr(buckets, "BUCKET_LEAVES", 1)
    rows = ParquetRows(folder, target="y")
    model = EmbeddingClassifier(**(QUICK | {"random_state": None})).fit(rows, checkpoint=checkpoint)
    after = {each.name: each.stat().st_mtime_ns for each in checkpoint.glob("solved-*")}
    assert before.items() <= after.items()
    assert len(after) > len(before) >= 4
    seed = json.loads((checkpoint / "fit.json").read_text())["seed"]
    at_once = EmbeddingClassifier(**(QUICK | {"random_state": seed})).fit(rows)
    new = frame_of(*made_up(200, 1)).drop(columns="y")
    np.testing.assert_allclose(model.predict_proba(new), at_once.predict_proba(new), atol=1e-10)


def test_another_fit_does_not_take_the_checkpoint(folder, tmp_path):
    rows, checkpoint = ParquetRows(folder, target="y"), tmp_path / "kept"
    EmbeddingClassifier(**QUICK).fit(rows, checkpoint=checkpoint)
    for changed in ({"ridge": 0.1}, {"random_state": 1}, {"solver": Tree(150, trees=2)}):
        with pytest.raises(ValueError, match="belongs to another fit"):
            EmbeddingClassifier(**(QUICK | changed)).fit(rows, checkpoint=checkpoint)
    X, y = made_up()
    write(frame_of(X, y[::-1]), folder)
    with pytest.raises(ValueError, match="belongs to another fit"):
        EmbeddingClassifier(**QUICK).fit(ParquetRows(folder, target="y"), checkpoint=checkpoint)
