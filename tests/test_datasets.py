import numpy as np
import pytest

from kernelwright import datasets


@pytest.fixture
def folders(tmp_path, monkeypatch):
    monkeypatch.setenv("KERNELWRIGHT_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("KERNELWRIGHT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("KERNELWRIGHT_OFFLINE")
    (tmp_path / "data").mkdir()
    return tmp_path


def test_the_data_folder_comes_first(folders):
    np.savez(folders / "data" / "iris.npz", X=np.ones((2, 3)), y=np.array([0, 1]))
    X, y = datasets.load("iris")
    assert X.shape == (2, 3)
    assert y.tolist() == [0, 1]


def test_train_and_test_parts_are_joined(folders):
    parts = {"X_train": np.zeros((3, 2)), "y_train": [0, 1, 2], "X_test": np.ones((1, 2)), "y_test": [5]}
    np.savez(folders / "data" / "mnist.npz", **parts)
    X, y = datasets.load("mnist")
    assert X[:, 0].tolist() == [0, 0, 0, 1]
    assert y.tolist() == [0, 1, 2, 5]


@pytest.mark.parametrize("name", ["iris", "wine", "digits", "wdbc"])
def test_scikit_learn_has_some(folders, name):
    X, y = datasets.load(name)
    source = datasets.SOURCES[name]
    assert X.shape == (source.n_rows, source.n_features)
    assert np.unique(y).tolist() == list(range(source.n_classes))


def test_what_openml_gives_is_checked_and_cached(folders, monkeypatch):
    calls = []

    def ask(data_id, **options):
        calls.append(data_id)
        labels = np.array(["N", "O"])[np.arange(100) % 2]
        return type("Frame", (), {"data": np.arange(900.0).reshape(100, 9), "target": labels})

    monkeypatch.setattr("sklearn.datasets.fetch_openml", ask)
    first = datasets.load("fertility")
    again = datasets.load("fertility")
    assert calls == [1473]
    np.testing.assert_array_equal(first[0], again[0])
    np.testing.assert_array_equal(first[1], np.arange(100) % 2)
    assert [path.name for path in (folders / "cache").iterdir()] == ["fertility.npz"]
    with pytest.raises(datasets.DataSetNotFoundError, match="not what was expected"):
        datasets.load("heart")


def test_a_missing_set_says_where_it_was_looked_for(folders, monkeypatch):
    with pytest.raises(
        datasets.DataSetNotFoundError, match=r"No data set 'moon' in the data folder .*data or the cache"
    ):
        datasets.load("moon")
    monkeypatch.delenv("KERNELWRIGHT_DATA")
    with pytest.raises(datasets.DataSetNotFoundError, match="KERNELWRIGHT_DATA is not set"):
        datasets.load("guide1")


@pytest.mark.parametrize("how", ["1", "yes"])
def test_offline_nothing_is_asked_of_the_network(folders, monkeypatch, how):
    monkeypatch.setenv("KERNELWRIGHT_OFFLINE", how)
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda **options: pytest.fail("asked"))
    with pytest.raises(datasets.DataSetNotFoundError, match="KERNELWRIGHT_OFFLINE is set"):
        datasets.load("heart")
    assert len(datasets.load("wine")[0]) == 178  # what is here is still here


@pytest.mark.parametrize("how", ["", "0"])
def test_offline_may_be_said_not_to_be(folders, monkeypatch, how):
    monkeypatch.setenv("KERNELWRIGHT_OFFLINE", how)
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda **options: 1 / 0)
    with pytest.raises(datasets.DataSetNotFoundError, match="could not provide it: division by zero"):
        datasets.load("heart")


def test_nothing_half_written_stays(folders, monkeypatch):
    monkeypatch.setattr(np, "savez_compressed", lambda file, **arrays: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        datasets._write(folders / "cache" / "x.npz", np.zeros((1, 1)), np.zeros(1))
    assert list((folders / "cache").iterdir()) == []


def test_the_data_folder_agrees_with_what_is_known(data_folder):
    for name, source in datasets.SOURCES.items():
        if name in ("mnist", "covtype", "ijcnn1_test", "ijcnn1_train"):  # large: their headers are read elsewhere
            continue
        X, y = datasets.load(name)
        assert len(X) == len(y) == source.n_rows, name
        assert (X.shape[1] if X.ndim == 2 else 1) == source.n_features, name
        assert len(np.unique(y)) == source.n_classes, name


def test_a_cache_that_cannot_be_written_costs_a_warning_and_no_data(folders, monkeypatch):
    (folders / "cache").write_text("a file where a folder should be")
    frame = type("Frame", (), {"data": np.arange(900.0).reshape(100, 9), "target": np.array(["N", "O"] * 50)})
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda **options: frame)
    with pytest.warns(UserWarning, match="could not be written to the cache"):
        X, _ = datasets.load("fertility")
    assert X.shape == (100, 9)
