import copy
import pickle
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits, load_wine, make_moons
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks
from torch import nn

from kernelwright import CollapseWarning, EmbeddingNetworkClassifier, MemoryBudgetError
from kernelwright.embedding import TrainingSet
from kernelwright.errors import NumericalError
from kernelwright.inputs.labels import one_hot
from kernelwright.kernels import Gaussian, Linear
from kernelwright.numerics.threads import threads_for


def small(**options):
    return EmbeddingNetworkClassifier(**{"hidden": (12, 6), "max_epochs": 12, "random_state": 0} | options)


@pytest.fixture(autouse=True)
def one_thread():
    with threads_for(0):
        yield


@pytest.fixture(scope="module")
def moons():
    return make_moons(160, noise=0.15, random_state=0)


@parametrize_with_checks(
    [small(learning_rate=0.1), small(learning_rate=0.1, kernel=Gaussian("median"))],
    expected_failed_checks=lambda _: {
        "check_sample_weight_equivalence_on_dense_data": "calibration leaves out rows, and a weight is one row"
    },
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


# What it computes ------------------------------------------------------------------------------------------------


def test_final_embedding_is_ridge_regression_on_all_rows_in_evaluation_mode(moons):
    X, y = moons
    model = small(dropout=0.4, batch_size=40, choose_ridge=False).fit(X, y)
    Z = np.column_stack([model.transform(X), np.ones(len(X))])
    W = np.linalg.solve(Z.T @ Z + len(X) * model.ridge_ * np.eye(7), Z.T @ np.eye(2)[y])
    np.testing.assert_allclose(model.coefficients_, W, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(model.decision_function(X), Z @ (W[:, 1] - W[:, 0]), rtol=1e-7, atol=1e-9)
    assert model.complexity_ == pytest.approx(np.sqrt((Z**2).sum(1).max() * (W**2).sum()))


def test_a_linear_kernel_on_top_learns_what_the_linear_head_learns(moons):
    explicit, implicit = (small(kernel=kernel, ridge=0.02).fit(*moons) for kernel in (None, Linear()))
    assert [s.objective for s in implicit.history_] == pytest.approx([s.objective for s in explicit.history_], rel=1e-3)
    np.testing.assert_allclose(implicit.raw_outputs(moons[0]), explicit.raw_outputs(moons[0]), atol=0.01)


def test_any_kernel_on_top_is_learned_with_the_network(moons):
    model = small(kernel=Gaussian("median"), max_epochs=60).fit(*moons)
    assert model.score(*moons) > 0.95
    first, last = (model.history_[i].hyperparameters for i in (0, -1))
    assert set(first) == {"ridge", "kernel.lengthscale"}
    assert all(first[name] != last[name] for name in first)
    assert model.coefficients_.shape == (160, 2)


def test_probabilities_and_labels_agree_row_by_row():
    X, y = load_wine(return_X_y=True)
    names = np.array(["red", "white", "rose"])[y]
    model = small(max_epochs=60).fit(X, names)
    p = model.predict_proba(X)
    np.testing.assert_array_equal(model.predict(X), model.classes_[p.argmax(1)])
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), p, atol=1e-12)
    np.testing.assert_allclose(np.concatenate([model.predict_proba(x[None]) for x in X[:20]]), p[:20], atol=1e-10)
    assert model.score(X, names) > 0.95
    assert model.decision_function(X).shape == (178, 3)


@pytest.mark.parametrize("options", [{}, {"dropout": 0.5}, {"validation": 0.5}, {"batch_size": 50}], ids=str)
def test_the_same_seed_gives_the_same_model_and_no_global_state_moves(moons, options):
    torch.manual_seed(7)
    np.random.seed(7)  # noqa: NPY002
    before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    first, second = (small(**options).fit(*moons).predict_proba(moons[0]) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert torch.equal(torch.get_rng_state(), before[0])
    np.testing.assert_array_equal(np.random.get_state()[1], before[1])  # noqa: NPY002
    other = small(**options, random_state=1).fit(*moons).predict_proba(moons[0])
    assert not np.array_equal(other, first)


def test_dropout_and_a_scored_part_of_each_batch_change_what_is_learned(moons):
    losses = [small(**o).fit(*moons).history_[-1].loss for o in ({}, {"dropout": 0.5}, {"validation": 0.5})]
    assert len(set(losses)) == 3


@pytest.mark.parametrize(("width", "scored"), [(6, 0.0), (100, 0.5)], ids=["few features", "many features"])
def test_half_of_each_batch_is_scored_where_features_are_many(moons, width, scored):
    by_itself, asked = (small(hidden=(width,), validation=v).fit(*moons) for v in ("auto", scored))
    assert by_itself.history_ == asked.history_


def test_copies_in_one_group_are_one_row_of_their_weight(moons):
    X, y = moons
    counts = np.arange(len(y)) % 3
    weighted = small().fit(X, y, sample_weight=counts)
    rows = np.repeat(np.arange(len(y)), counts)
    repeated = small().fit(X[rows], y[rows], groups=rows)
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-4)
    doubled = small().fit(X, y, sample_weight=2.0 * counts)
    np.testing.assert_allclose(weighted.predict_proba(X), doubled.predict_proba(X), atol=1e-4)


def test_groups_are_held_out_as_a_whole(moons):
    X, y = moons
    groups = np.arange(len(y)) // 5
    model = small(early_stopping=0.3)
    data = TrainingSet.of(torch.from_numpy(X), one_hot(y, 2), groups=torch.from_numpy(groups))
    learned, judged = model._split(data)
    assert not set(groups[learned]) & set(groups[judged])
    assert len(learned) + len(judged) == len(y)
    assert model.fit(X, y, groups=groups).score(X, y) > 0.8


def test_classes_may_weigh_differently(moons):
    X, y = moons
    by_class = small(class_weight={0: 1.0, 1: 9.0}).fit(X, y)
    assert by_class.predict(X).mean() > small().fit(X, y).predict(X).mean()


# The complexity --------------------------------------------------------------------------------------------------


def test_sup_options(moons):
    fits = {sup: small(sup=sup, activation="tanh", choose_ridge=False).fit(*moons) for sup in ("bound", 9.0)}
    for sup, expected in ((("bound"), 6.0), (9.0, 9.0)):
        norm = np.linalg.norm(fits[sup].coefficients_)
        assert fits[sup].complexity_ == pytest.approx(np.sqrt(expected + 1.0) * norm)
    published = small(sup="published").fit(*moons)
    assert published.complexity_ == pytest.approx(np.linalg.norm(published.coefficients_))
    assert small(sup="bound", kernel=Gaussian()).fit(*moons).complexity_ > 0
    with pytest.raises(ValueError, match="ends in ReLU: use sup='empirical'"):
        small(sup="bound").fit(*moons)


def test_a_complexity_weight_that_is_too_strong_is_reported(moons):
    with pytest.warns(CollapseWarning, match="smaller complexity_weight"):
        small(complexity_weight="4e", max_epochs=200, learning_rate=0.1, choose_ridge=False).fit(*moons)


# Inputs ----------------------------------------------------------------------------------------------------------


def convolutional(**options):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 32), nn.ReLU())
    return small(module=net, batch_size=200, max_epochs=25, **options)


def test_images_go_to_a_given_network_in_their_shape():
    X, y = load_digits(return_X_y=True)
    X, y = X.reshape(-1, 1, 8, 8) / 16.0, y
    given = convolutional()
    start = copy.deepcopy(given.module.state_dict())
    model = given.fit(X[::3], y[::3])
    assert model.score(X[1::3], y[1::3]) > 0.9
    assert model.transform(X[:3]).shape == (3, 32)
    assert all(torch.equal(start[name], value) for name, value in given.module.state_dict().items())
    with pytest.raises(ValueError, match=r"Expected inputs of shape \(1, 8, 8\)"):
        model.predict(X[:, :, :7])


def test_sequences_and_flat_images():
    class LastState(nn.Module):
        def __init__(self):
            super().__init__()
            self.cells = nn.GRU(2, 8, batch_first=True)

        def forward(self, x):
            return self.cells(x)[0][:, -1]

    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 120)
    X = rng.normal(size=(120, 5, 2)) + y[:, None, None]
    assert small(module=LastState(), max_epochs=30).fit(X, y).score(X, y) > 0.9
    assert small(max_epochs=30).fit(X, y).score(X, y) > 0.9  # the fully connected one takes them flat
    with pytest.raises(ValueError, match="a row of features for each input"):
        small(module=nn.Identity()).fit(X, y)


def test_data_frames_keep_their_names(moons):
    pandas = pytest.importorskip("pandas")
    model = small().fit(pandas.DataFrame(moons[0], columns=["east", "north"]), moons[1])
    assert list(model.feature_names_in_) == ["east", "north"]
    assert list(model.get_feature_names_out())[:1] == ["embeddingnetworkclassifier0"]


# Training --------------------------------------------------------------------------------------------------------


def test_early_stopping_keeps_the_best_epoch(moons):
    model = small(early_stopping=0.25, patience=3, max_epochs=400, learning_rate=0.05).fit(*moons)
    assert model.n_iter_ < 400
    assert model.objective_ == model.history_[-4].objective


def test_rows_are_held_out_by_itself_where_there_are_many():
    X, y = make_moons(2400, noise=0.2, random_state=0)
    model = small(batch_size=200, max_epochs=15, learning_rate=0.05).fit(X, y)
    assert model.score(X, y) > 0.95
    assert model.batch_size_ == 200
    assert small(max_epochs=1).fit(X, y).batch_size_ == 500


def test_clipped_gradients_and_no_schedule_take_other_steps(moons):
    losses = [small(**o).fit(*moons).history_[-1].loss for o in ({}, {"max_grad_norm": 1e-3}, {"schedule": None})]
    assert len(set(losses)) == 3


def test_a_callback_may_stop_training(moons):
    seen = []

    def stop_at_four(step):
        seen.append(step)
        if len(seen) == 4:
            raise StopIteration

    model = small(callback=stop_at_four).fit(*moons)
    assert model.n_iter_ == 4
    assert model.history_ == seen
    np.testing.assert_allclose(model.history_[3].loss, small().fit(*moons).history_[3].loss)


def interrupt_at(epoch):
    seen = []

    def callback(step):
        seen.append(step)
        if len(seen) == epoch:
            raise KeyboardInterrupt

    return callback


def test_ctrl_c_keeps_what_was_learned(moons):
    with pytest.warns(UserWarning, match="Interrupted after 5 steps"):
        model = small(callback=interrupt_at(5)).fit(*moons)
    assert model.n_iter_ == 5
    assert model.predict_proba(moons[0]).shape == (160, 2)


def test_warm_start_goes_on(moons):
    model = small(warm_start=True, learning_rate=0.002).fit(*moons)
    first, weights = model.history_[0].loss, model.module_[0].weight.detach().clone()
    assert model.fit(*moons).history_[0].loss < first
    assert not torch.equal(model.module_[0].weight, weights)


def test_verbose_writes_to_standard_error(moons, capsys):
    small(verbose=4).fit(*moons)
    assert capsys.readouterr().err.count("objective") == 3


# Checkpoints -----------------------------------------------------------------------------------------------------

RESUMED = [
    {},
    {"batch_size": 40, "dropout": 0.3},
    {"validation": 0.4, "early_stopping": 0.2, "patience": 4},
    {"kernel": Gaussian("median"), "batch_size": 60},
    {"random_state": None, "batch_size": 40},
]


class Drawn(np.random.RandomState):
    """Draws the one number that it is told."""

    def randint(self, high):
        return self.number

    def __init__(self, number):
        super().__init__(0)
        self.number = number


@pytest.mark.parametrize("options", RESUMED, ids=str)
def test_an_interrupted_run_ends_where_an_uninterrupted_one_does(moons, tmp_path, options):
    broken, whole = tmp_path / "broken", tmp_path / "whole"
    with pytest.warns(UserWarning, match="Interrupted"):
        small(**options, checkpoint=broken, callback=interrupt_at(3)).fit(*moons)
    resumed = small(**options, checkpoint=broken).fit(*moons)
    if "random_state" in options:  # the seed that was drawn is in the file
        options = options | {"random_state": Drawn(torch.load(broken, weights_only=True)["seed"])}
    straight = small(**options, checkpoint=whole).fit(*moons)
    assert resumed.n_iter_ == straight.n_iter_ > 3
    assert resumed.history_ == straight.history_
    for name, value in straight.module_.state_dict().items():
        assert torch.equal(resumed.module_.state_dict()[name], value)
    np.testing.assert_array_equal(resumed.coefficients_, straight.coefficients_)
    np.testing.assert_array_equal(resumed.predict_proba(moons[0]), straight.predict_proba(moons[0]))


KILLED = """
import sys
from sklearn.datasets import make_moons
from tests.estimators.test_network import small
from kernelwright.numerics.linalg import threads_for
with threads_for(0):
    small(max_epochs=5000, batch_size=40, dropout=0.3, checkpoint=sys.argv[1], schedule=None).fit(*make_moons(
        160, noise=0.15, random_state=0))
"""


@pytest.mark.slow
def test_a_killed_run_is_taken_up_again(moons, tmp_path):
    path = tmp_path / "run"
    with subprocess.Popen([sys.executable, "-c", KILLED, str(path)]) as process:
        deadline = time.monotonic() + 60
        while not path.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        process.kill()
    done = len(torch.load(path, weights_only=True)["history"])
    assert 1 <= done < 5000

    def stop_after(number):
        def callback(step):
            nonlocal number
            number -= 1
            if number == 0:
                raise StopIteration

        return callback

    options = {"max_epochs": 5000, "batch_size": 40, "dropout": 0.3, "schedule": None}
    resumed = small(**options, checkpoint=path, callback=stop_after(5)).fit(*moons)
    straight = small(**options, callback=stop_after(done + 5)).fit(*moons)
    np.testing.assert_array_equal(resumed.predict_proba(moons[0]), straight.predict_proba(moons[0]))


def test_a_checkpoint_of_another_run_or_no_checkpoint_is_refused(moons, tmp_path):
    path = tmp_path / "run"
    small(checkpoint=path).fit(*moons)
    with pytest.raises(ValueError, match=r"is of another run.*Remove it, or name another file\."):
        small(checkpoint=path, epsilon=0.2).fit(*moons)
    with pytest.raises(ValueError, match="is of another run"):
        small(checkpoint=path).fit(moons[0] + 1e-9, moons[1])
    path.write_bytes(b"something else")
    with pytest.raises(ValueError, match="is no checkpoint of an embedding network"):
        small(checkpoint=path).fit(*moons)
    assert [each.name for each in tmp_path.iterdir()] == ["run"]


# scikit-learn's tools --------------------------------------------------------------------------------------------


def test_copies_pickles_and_grid_search(moons):
    X, y = moons
    model = small(module=nn.Sequential(nn.Linear(2, 8), nn.Tanh()), kernel=Gaussian(0.7))
    copied = clone(model)
    assert copied.module is not model.module
    fitted = model.fit(X, y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict_proba(X), fitted.predict_proba(X))
    search = GridSearchCV(small(), {"hidden": [(4,), (8, 4)], "complexity_weight": [0.0, "4e/n"]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.8


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"module": "cnn"}, "'module' parameter of EmbeddingNetworkClassifier must be"),
        ({"hidden": ()}, "'hidden' parameter of EmbeddingNetworkClassifier must be one or more widths"),
        ({"hidden": (0,)}, "'hidden' parameter"),
        ({"activation": "step"}, "'activation' parameter"),
        ({"sup": "infinite"}, "'sup' parameter"),
        ({"epsilon": 0.5}, "'epsilon' parameter"),
        ({"validation": 1.0}, "'validation' parameter"),
        ({"dropout": 1.0}, "'dropout' parameter"),
        ({"schedule": "linear"}, "'schedule' parameter"),
        ({"complexity_weight": "5e"}, "'complexity_weight' parameter"),
        ({"device": "abacus"}, "'device' parameter of EmbeddingNetworkClassifier must be 'auto' or a device that"),
    ],
)
def test_bad_options_get_a_clear_sentence(moons, options, message):
    with pytest.raises(ValueError, match=message):
        small(**options).fit(*moons)


def test_a_kernel_on_too_many_rows_is_refused(moons, monkeypatch):
    monkeypatch.setattr("kernelwright.numerics.memory.free_memory", lambda: 2.0**18)
    with pytest.raises(MemoryBudgetError):
        small(kernel=Gaussian()).fit(*moons)
    small().fit(*moons)


def test_fits_in_several_threads_do_not_draw_each_others_random_numbers():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] > 0).astype(int)

    def outputs(_: int) -> np.ndarray:
        model = EmbeddingNetworkClassifier(hidden=(8,), max_epochs=3, dropout=0.3, batch_size=20, random_state=0)
        return model.fit(X, y).decision_function(X)

    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(outputs, range(8)):
            np.testing.assert_array_equal(found, outputs(0))


def test_inputs_that_overflow_in_the_network_are_refused_in_words():
    X = np.random.default_rng(0).normal(size=(20, 2)) * 1e200
    with pytest.raises(NumericalError, match="so large that its kernel values or features overflow"):
        EmbeddingNetworkClassifier(hidden=(4,), scale=None, random_state=0).fit(X, np.arange(20) % 2)


def test_a_fitted_network_is_not_in_training_mode():
    """Threads predict with one network: none may switch its dropout on under another."""
    X, y = np.random.default_rng(0).normal(size=(100, 4)), np.arange(100) % 2
    model = EmbeddingNetworkClassifier(hidden=(16,), dropout=0.5, max_epochs=1, random_state=0).fit(X, y)
    inputs = torch.from_numpy(X).to(next(model.module_.parameters()).dtype)
    model.predict(X)
    assert not model.module_.training
    assert torch.equal(model.module_(inputs), model.module_(inputs))
