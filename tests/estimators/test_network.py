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
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks
from torch import nn

from kernelwright import CollapseWarning, EmbeddingNetworkClassifier, MemoryBudgetError, learning
from kernelwright.errors import NumericalError
from kernelwright.kernels import Gaussian, Linear
from kernelwright.networks import MLP, HeadOptions, Training
from kernelwright.numerics.threads import threads_for
from tests import reference as naive


def small(training=(), **options):
    """Make a small network; ``training`` holds its training settings."""
    training = Training(**{"max_epochs": 12} | dict(training))
    return EmbeddingNetworkClassifier(**{"hidden": (12, 6), "random_state": 0} | options, training=training)


def whole(weight="4e/n", epsilon=0.1):
    return learning.Rademacher(weight, epsilon=epsilon)


def half(share=0.5):
    return learning.HeldOut("4e/n", epsilon=0.1, share=share)


def thinned(dropout, **options):
    return MLP((12, 6), dropout=dropout, **options)


@pytest.fixture(autouse=True)
def one_thread():
    with threads_for(0):
        yield


@pytest.fixture(scope="module")
def moons():
    return make_moons(160, noise=0.15, random_state=0)


@parametrize_with_checks(
    [small({"learning_rate": 0.1}), small({"learning_rate": 0.1}, kernel=Gaussian("median"))],
    expected_failed_checks=lambda _: {
        "check_sample_weight_equivalence_on_dense_data": "calibration leaves out rows, and a weight is one row"
    },
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


# What it computes ------------------------------------------------------------------------------------------------


def test_final_embedding_is_ridge_regression_on_all_rows_in_evaluation_mode(moons):
    X, y = moons
    model = small({"batch_size": 40}, module=thinned(0.4), head=HeadOptions(choose_ridge=False)).fit(X, y)
    Z = np.column_stack([model.transform(X), np.ones(len(X))])
    W = np.linalg.solve(Z.T @ Z + len(X) * model.ridge_ * np.eye(7), Z.T @ np.eye(2)[y])
    np.testing.assert_allclose(model.coefficients_, W, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(model.decision_function(X), Z @ (W[:, 1] - W[:, 0]), rtol=1e-7, atol=1e-9)
    assert model.complexity_ == pytest.approx(np.sqrt((Z**2).sum(1).max() * (W**2).sum()))


def test_a_linear_kernel_on_top_learns_what_the_linear_head_learns(moons):
    explicit, implicit = (small(kernel=kernel, head=HeadOptions(ridge=0.02)).fit(*moons) for kernel in (None, Linear()))
    assert [s.objective for s in implicit.history_] == pytest.approx([s.objective for s in explicit.history_], rel=1e-3)
    np.testing.assert_allclose(implicit.raw_outputs(moons[0]), explicit.raw_outputs(moons[0]), atol=0.01)


def test_any_kernel_on_top_is_learned_with_the_network(moons):
    model = small({"max_epochs": 60}, kernel=Gaussian("median")).fit(*moons)
    assert model.score(*moons) > 0.95
    first, last = (model.history_[i].hyperparameters for i in (0, -1))
    assert set(first) == {"ridge", "kernel.lengthscale"}
    assert all(first[name] != last[name] for name in first)
    assert model.coefficients_.shape == (160, 2)


def test_probabilities_and_labels_agree_row_by_row():
    X, y = load_wine(return_X_y=True)
    names = np.array(["red", "white", "rose"])[y]
    model = small({"max_epochs": 60}).fit(X, names)
    p = model.predict_proba(X)
    np.testing.assert_array_equal(model.predict(X), model.classes_[p.argmax(1)])
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), p, atol=1e-12)
    np.testing.assert_allclose(np.concatenate([model.predict_proba(x[None]) for x in X[:20]]), p[:20], atol=1e-10)
    assert model.score(X, names) > 0.95
    assert model.decision_function(X).shape == (178, 3)


@pytest.mark.parametrize(
    "options", [{}, {"module": thinned(0.5)}, {"learn": half()}, {"training": {"batch_size": 50}}], ids=str
)
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
    losses = [small(**o).fit(*moons).history_[-1].loss for o in ({}, {"module": thinned(0.5)}, {"learn": half()})]
    assert len(set(losses)) == 3


@pytest.mark.parametrize(("width", "asked"), [(6, whole()), (100, half())], ids=["few features", "many features"])
def test_half_of_each_batch_is_scored_where_features_are_many(moons, width, asked):
    by_itself, asked = (small(hidden=(width,), learn=learn).fit(*moons) for learn in ("auto", asked))
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


def test_groups_may_be_held_out(moons):
    X, y = moons
    groups = np.arange(len(y)) // 5
    assert small({"early_stopping": 0.3}).fit(X, y, groups=groups).score(X, y) > 0.8


def test_classes_may_weigh_differently(moons):
    X, y = moons
    by_class = small(class_weight={0: 1.0, 1: 9.0}).fit(X, y)
    assert by_class.predict(X).mean() > small().fit(X, y).predict(X).mean()


# The complexity --------------------------------------------------------------------------------------------------


def test_sup_options(moons):
    bounded = MLP((12, 6), activation="tanh")
    fits = {
        sup: small(module=bounded, head=HeadOptions(sup=sup, choose_ridge=False)).fit(*moons) for sup in ("bound", 9.0)
    }
    for sup, expected in ((("bound"), 6.0), (9.0, 9.0)):
        norm = np.linalg.norm(fits[sup].coefficients_)
        assert fits[sup].complexity_ == pytest.approx(np.sqrt(expected + 1.0) * norm)
    published = small(head=HeadOptions(sup="published")).fit(*moons)
    assert published.complexity_ == pytest.approx(np.linalg.norm(published.coefficients_))
    assert small(head=HeadOptions(sup="bound"), kernel=Gaussian()).fit(*moons).complexity_ > 0
    with pytest.raises(ValueError, match="ends in ReLU: use sup='empirical'"):
        small(head=HeadOptions(sup="bound")).fit(*moons)


def test_a_complexity_weight_that_is_too_strong_is_reported(moons):
    training, head = {"max_epochs": 200, "learning_rate": 0.1}, HeadOptions(choose_ridge=False)
    with pytest.warns(CollapseWarning, match="smaller complexity_weight") as found:
        small(training, learn=whole("4e"), head=head).fit(*moons)
    assert found[0].filename == __file__


def test_words_are_the_published_objectives(moons):
    for word, method in (("rademacher", learning.Rademacher()), ("held-out", learning.HeldOut())):
        by_word, by_object = (small(learn=learn).fit(*moons) for learn in (word, method))
        assert by_word.history_ == by_object.history_
    X, y = moons[0], np.where(np.arange(160) % 8 == 0, 1 - moons[1], moons[1])  # some outputs are clipped
    losses = [small({"max_epochs": 60}, learn=learn).fit(X, y).history_[-1].loss for learn in ("rademacher", "auto")]
    assert losses[0] > losses[1]


# Uncertainty -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [None, Gaussian("median")], ids=["features", "kernel"])
def test_entropy_is_the_formula_where_there_is_support(moons, kernel):
    X, _ = moons
    model = small({"max_epochs": 40}, kernel=kernel).fit(*moons)
    F, near = model.raw_outputs(X), model.support(X) >= 0.1
    assert near.sum() > 150
    p = np.clip(F, 0.0, None)
    p /= p.sum(1, keepdims=True)
    for method, of in (("clip", p), ("embedding", F)):  # Eqs. (33) and (37)
        expected = -sum(f * np.log(f, out=np.zeros_like(f), where=f > 0) for f in of.T)
        np.testing.assert_allclose(model.entropy(X, method)[near], expected[near], atol=1e-12)


@pytest.mark.parametrize("method", ["embedding", "clip"])
def test_pure_entropy_is_the_printed_formula_for_every_row(moons, method):
    model = small({"max_epochs": 40}, kernel=Gaussian("median")).fit(*moons)
    X = np.vstack([moons[0], 30.0 * moons[0]])  # half of the rows are far away
    F = model.raw_outputs(X)
    shares = np.array([naive.clip_normalise(f[None])[0] for f in F]) if method == "clip" else F
    expected = [-sum(p * np.log(p) for p in row if p > 0) for row in shares]
    np.testing.assert_allclose(model.entropy(X, method, pure=True), expected, atol=1e-12)
    clipped = model.entropy(X, method, pure=True, clip=True)
    np.testing.assert_allclose(clipped, np.maximum(expected, 0.0), atol=1e-12)


def test_the_loss_of_a_bound_is_clipped_as_the_network_learned(moons):
    for learn, epsilon in (("auto", 0.1), ("rademacher", 1e-15), (learning.HeldOut(epsilon=0.3), 0.3)):
        model = small(learn=learn).fit(*moons)
        own = model.raw_outputs(moons[0])[np.arange(len(moons[1])), moons[1]]
        expected = -np.log(np.clip(own, epsilon, 1.0)).mean()
        assert model.risk_bound().parts["training loss"] == pytest.approx(expected, rel=1e-5)


def test_a_network_learns_alike_by_the_normalised_loss_with_the_weight_divided(moons):
    """L / M + tau r is (L + M tau r) / M, and Adam does not see the scale of a gradient."""
    M = -np.log(0.1)
    plain, normalised, centred = (
        small(learn=learning.Rademacher(weight, epsilon=0.1, loss=loss)).fit(*moons)
        for weight, loss in ((0.02, "log"), (0.02 / M, "normalised"), (0.02 / M, "centred"))
    )
    np.testing.assert_allclose(normalised.raw_outputs(moons[0]), plain.raw_outputs(moons[0]), atol=1e-3)
    assert normalised.objective_ == pytest.approx(plain.objective_ / M, rel=1e-4)
    assert centred.objective_ == pytest.approx(normalised.objective_ - 1, abs=1e-4)


def test_entropy_far_from_all_rows_is_that_of_the_class_frequencies(moons):
    model = small(kernel=Gaussian("median"), module=MLP((12, 6), activation="tanh"), scale=None).fit(*moons)
    model.embedding_.points.mul_(100.0)  # all training rows are now far from what the network can say
    prior = model.class_prior_
    np.testing.assert_allclose(model.entropy(moons[0], "clip"), -(prior * np.log(prior)).sum(), atol=1e-9)


def test_the_rows_behind_the_unit_of_support_are_known(moons):
    assert small().fit(*moons).n_support_rows_ == 160
    assert small({"early_stopping": 0.25}).fit(*moons).n_support_rows_ == 40  # of features, the judged rows


def test_a_calibrator_may_make_the_probabilities(moons):
    X, y = moons
    model = small({"max_epochs": 40}, probability=LogisticRegression()).fit(X, y)
    expected = model.probability_map_.calibrators[0].predict_proba(model.raw_outputs(X))
    inside = model.support(X) >= 1
    np.testing.assert_allclose(model.predict_proba(X)[inside], expected[inside], atol=1e-6)


# Inputs ----------------------------------------------------------------------------------------------------------


def convolutional(**options):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 32), nn.ReLU())
    return small({"batch_size": 200, "max_epochs": 25}, module=net, **options)


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
    assert small({"max_epochs": 30}, module=LastState()).fit(X, y).score(X, y) > 0.9
    assert small({"max_epochs": 30}).fit(X, y).score(X, y) > 0.9  # the fully connected one takes them flat
    with pytest.raises(ValueError, match="one row of features for each input"):
        small(module=nn.Identity()).fit(X, y)


def test_data_frames_keep_their_names(moons):
    pandas = pytest.importorskip("pandas")
    model = small().fit(pandas.DataFrame(moons[0], columns=["east", "north"]), moons[1])
    assert list(model.feature_names_in_) == ["east", "north"]
    assert list(model.get_feature_names_out())[:1] == ["embeddingnetworkclassifier0"]


# Training --------------------------------------------------------------------------------------------------------


def test_early_stopping_keeps_the_best_epoch(moons):
    model = small({"early_stopping": 0.25, "patience": 3, "max_epochs": 400, "learning_rate": 0.05}).fit(*moons)
    assert model.n_iter_ < 400
    assert model.objective_ == model.history_[-4].objective


def test_rows_are_held_out_by_itself_where_there_are_many():
    X, y = make_moons(2400, noise=0.2, random_state=0)
    model = small({"batch_size": 200, "max_epochs": 15, "learning_rate": 0.05}).fit(X, y)
    assert model.score(X, y) > 0.95
    assert model.batch_size_ == 200
    assert small({"max_epochs": 1}).fit(X, y).batch_size_ == 500


def test_clipped_gradients_and_no_schedule_take_other_steps(moons):
    losses = [small(o).fit(*moons).history_[-1].loss for o in ({}, {"max_grad_norm": 1e-3}, {"schedule": None})]
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
    model = small({"learning_rate": 0.002}, warm_start=True).fit(*moons)
    first, weights = model.history_[0].loss, model.module_[0].weight.detach().clone()
    assert model.fit(*moons).history_[0].loss < first
    assert not torch.equal(model.module_[0].weight, weights)


def test_verbose_writes_to_the_log(moons, caplog):
    with caplog.at_level("INFO", logger="kernelwright"):
        small(verbose=4).fit(*moons)
    assert [record.name for record in caplog.records] == ["kernelwright"] * 3
    assert caplog.text.count("objective") == 3


# Checkpoints -----------------------------------------------------------------------------------------------------

RESUMED = [
    {},
    {"training": {"batch_size": 40}, "module": thinned(0.3)},
    {"learn": half(0.4), "training": {"early_stopping": 0.2, "patience": 4}},
    {"kernel": Gaussian("median"), "training": {"batch_size": 60}},
    {"random_state": None, "training": {"batch_size": 40}},
]


def kept(checkpoint, training=(), **options):
    return small(dict(training) | {"checkpoint": checkpoint}, **options)


class Drawn(np.random.RandomState):
    """Always draws the given number."""

    def randint(self, high):
        return self.number

    def __init__(self, number):
        super().__init__(0)
        self.number = number


@pytest.mark.parametrize("options", RESUMED, ids=str)
def test_an_interrupted_run_ends_where_an_uninterrupted_one_does(moons, tmp_path, options):
    broken, unbroken = tmp_path / "broken", tmp_path / "whole"
    with pytest.warns(UserWarning, match="Interrupted"):
        kept(broken, **options, callback=interrupt_at(3)).fit(*moons)
    resumed = kept(broken, **options).fit(*moons)
    if "random_state" in options:  # the seed that was drawn is in the file
        options = options | {"random_state": Drawn(torch.load(broken, weights_only=True)["seed"])}
    straight = kept(unbroken, **options).fit(*moons)
    assert resumed.n_iter_ == straight.n_iter_ > 3
    assert resumed.history_ == straight.history_
    for name, value in straight.module_.state_dict().items():
        assert torch.equal(resumed.module_.state_dict()[name], value)
    np.testing.assert_array_equal(resumed.coefficients_, straight.coefficients_)
    np.testing.assert_array_equal(resumed.predict_proba(moons[0]), straight.predict_proba(moons[0]))


LONG = {"max_epochs": 5000, "batch_size": 40, "schedule": None}
KILLED = """
import sys
from sklearn.datasets import make_moons
from tests.estimators.test_network import LONG, kept, thinned
from kernelwright.numerics.threads import threads_for
with threads_for(0):
    kept(sys.argv[1], LONG, module=thinned(0.3)).fit(*make_moons(160, noise=0.15, random_state=0))
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

    resumed = kept(path, LONG, module=thinned(0.3), callback=stop_after(5)).fit(*moons)
    straight = small(LONG, module=thinned(0.3), callback=stop_after(done + 5)).fit(*moons)
    np.testing.assert_array_equal(resumed.predict_proba(moons[0]), straight.predict_proba(moons[0]))


def test_a_checkpoint_of_another_run_or_no_checkpoint_is_refused(moons, tmp_path):
    path = tmp_path / "run"
    kept(path).fit(*moons)
    with pytest.raises(ValueError, match=r"belongs to another run.*Remove it, or use another file\."):
        kept(path, learn=whole(epsilon=0.2)).fit(*moons)
    with pytest.raises(ValueError, match="belongs to another run"):
        kept(path).fit(moons[0] + 1e-9, moons[1])
    for other in (
        {"training": {"learning_rate": 0.02}},
        {"head": HeadOptions(ridge=0.1)},
        {"learn": half()},
        {"hidden": (12, 7)},
        {"random_state": 1},
    ):
        with pytest.raises(ValueError, match="belongs to another run"):
            kept(path, **other).fit(*moons)
    path.write_bytes(b"something else")
    with pytest.raises(ValueError, match="is not a checkpoint of an embedding network"):
        kept(path).fit(*moons)
    assert [each.name for each in tmp_path.iterdir()] == ["run"]


# scikit-learn's tools --------------------------------------------------------------------------------------------


def test_copies_pickles_and_grid_search(moons):
    X, y = moons
    model = small(module=nn.Sequential(nn.Linear(2, 8), nn.Tanh()), kernel=Gaussian(0.7))
    copied = clone(model)
    assert copied.module is not model.module
    fitted = model.fit(X, y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict_proba(X), fitted.predict_proba(X))
    grid = {
        "hidden": [(4,), (8, 4)],
        "learn__complexity_weight": [0.0, "4e/n"],
        "training__learning_rate": [0.01, 0.05],
    }
    search = GridSearchCV(small(learn=whole()), grid, cv=2).fit(X, y)
    assert search.best_score_ > 0.8
    assert search.best_estimator_.training.learning_rate == search.best_params_["training__learning_rate"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"module": "cnn"}, "'module' parameter of EmbeddingNetworkClassifier must be"),
        ({"hidden": ()}, "'hidden' parameter of EmbeddingNetworkClassifier must be one or more widths"),
        ({"hidden": (0,)}, "'hidden' parameter"),
        ({"module": MLP(())}, "'hidden' parameter of MLP must be one or more widths"),
        ({"module": MLP(activation="step")}, "'activation' parameter of MLP"),
        ({"module": MLP(dropout=1.0)}, "'dropout' parameter of MLP"),
        ({"head": HeadOptions(sup="infinite")}, "'sup' parameter of HeadOptions"),
        ({"head": "ridge"}, "'head' parameter of EmbeddingNetworkClassifier"),
        ({"learn": whole(epsilon=0.5)}, "'epsilon' parameter of Rademacher"),
        ({"learn": half(1.0)}, "'share' parameter of HeldOut"),
        ({"learn": whole("5e")}, "'complexity_weight' parameter of Rademacher"),
        ({"learn": "folds"}, "'learn' parameter of EmbeddingNetworkClassifier"),
        ({"learn": None}, "'learn' parameter of EmbeddingNetworkClassifier"),
        ({"learn": learning.Rademacher}, "'learn' parameter of EmbeddingNetworkClassifier"),
        ({"learn": learning.Auto()}, r"must be 'auto', Rademacher\(\) or HeldOut\(\).*Got Auto\(\) instead"),
        ({"learn": learning.LeaveOneOut()}, r"learns by Eq. \(12\) or Eq. \(13\). Got LeaveOneOut\(\) instead"),
        ({"learn": learning.Rademacher(batch_size=50)}, r"does not use batch_size=50 of Rademacher.*networks.Training"),
        ({"learn": learning.HeldOut(optimizer="adam")}, r"does not use optimizer='adam' of HeldOut.*networks.Training"),
        ({"learn": learning.HeldOut(kernel_share=0.5)}, r"does not use kernel_share=0.5 of HeldOut"),
        (
            {"learn": learning.HeldOut(holdout_share=0.2)},
            r"does not use holdout_share=0.2.*risk_bound\('holdout', X, y\)",
        ),
        ({"training": {"schedule": "linear"}}, "'schedule' parameter of Training"),
        ({"training": {"device": "abacus"}}, "'device' parameter of Training must be 'auto' or a device that"),
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
        model = small({"max_epochs": 3, "batch_size": 20}, module=MLP((8,), dropout=0.3))
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
    model = small({"max_epochs": 1}, module=MLP((16,), dropout=0.5)).fit(X, y)
    inputs = torch.from_numpy(X).to(next(model.module_.parameters()).dtype)
    model.predict(X)
    assert not model.module_.training
    assert torch.equal(model.module_(inputs), model.module_(inputs))
