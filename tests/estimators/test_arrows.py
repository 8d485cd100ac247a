"""The steps of a fit, one by one: split, prepare, learn, solve, and what is kept of the rows."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist

from kernelwright import EmbeddingClassifier, learning, solvers
from kernelwright.embedding import TrainingSet
from kernelwright.errors import DependenceWarning, MemoryBudgetError
from kernelwright.estimators import row_split
from kernelwright.estimators.arrows import embedded_rows, embedding_of, learn, prepare, refuse_if_too_large, solve
from kernelwright.estimators.checking import plan_of
from kernelwright.estimators.progress import progress
from kernelwright.features import RandomFourier
from kernelwright.inputs.arrays import generator
from kernelwright.inputs.dataset import Dataset
from kernelwright.inputs.targets import ClassTargets
from kernelwright.kernels import Gaussian
from kernelwright.learning import Choice, Given
from kernelwright.objectives.losses import BRIER, CalibratedLogLoss
from kernelwright.solvers import Exact, Herding, Landmarks, Tree
from kernelwright.solvers.explicit import Explicit

RNG = np.random.default_rng(0)
N = 50
X = RNG.normal(size=(N, 2)) * [1.0, 10.0] + [5.0, 0.0]
Y = (X[:, 0] > 5.0).astype(int) + (X[:, 1] > 5.0)


def rows(weights=None, groups=None):
    return Dataset(X, None, Y, np.ones(N) if weights is None else weights, groups)


def split(rows, plan):
    return row_split.split(rows, plan.method, plan.random_state)


def plan(kernel=None, **options):
    model = EmbeddingClassifier(Gaussian(1.5) if kernel is None else kernel, **({"random_state": 0} | options))
    return replace(plan_of(model), targets=ClassTargets(3))


# split -----------------------------------------------------------------------------------------------------------


def test_without_shares_all_rows_are_learned_from_and_solved_on():
    parts = split(rows(), plan())
    np.testing.assert_array_equal(parts.learned, np.arange(N))
    assert parts.solved is parts.learned
    assert len(parts.held) == 0


@pytest.mark.parametrize("kernel_share", [None, 0.4])
@pytest.mark.parametrize("holdout_share", [None, 0.3])
def test_shares_divide_the_rows(kernel_share, holdout_share):
    asked = plan(learn=Given(kernel_share=kernel_share, holdout_share=holdout_share))
    parts = split(rows(), asked)
    assert len(parts.held) == (15 if holdout_share else 0)
    used = N - len(parts.held)
    assert len(parts.learned) == (round(0.4 * used) if kernel_share else used)
    own = [parts.held, parts.learned, parts.solved] if kernel_share else [parts.held, parts.learned]
    np.testing.assert_array_equal(np.sort(np.concatenate(own)), np.arange(N))  # each row once
    for part in (parts.learned, parts.solved, parts.held):
        np.testing.assert_array_equal(part, np.sort(part))
    if not kernel_share:
        np.testing.assert_array_equal(parts.solved, parts.learned)
    again, other = split(rows(), asked), split(rows(), replace(asked, random_state=1))
    np.testing.assert_array_equal(again.learned, parts.learned)
    if kernel_share or holdout_share:
        assert not np.array_equal(other.learned, parts.learned)


@pytest.mark.parametrize("kernel_share", [None, 0.4])
def test_groups_are_divided_whole(kernel_share):
    groups = RNG.permutation(np.arange(N) // 5)
    parts = split(rows(groups=groups), plan(learn=Given(kernel_share=kernel_share, holdout_share=0.3)))
    own = [parts.held, parts.learned, *([parts.solved] if kernel_share else [])]
    np.testing.assert_array_equal(np.sort(np.concatenate(own)), np.arange(N))
    names = [set(groups[part]) for part in own]
    assert [len(some) for some in names] == ([3, 3, 4] if kernel_share else [3, 7])
    assert len(set().union(*names)) == 10


# prepare ---------------------------------------------------------------------------------------------------------


def test_rows_are_prepared_as_they_are_where_nothing_is_asked_for():
    found = prepare(rows(), split(rows(), plan(learn=None)), plan(learn=None))
    assert found.embedded is found.learned
    assert found.scaler is None
    np.testing.assert_array_equal(found.learned.points[found.place].numpy(), X)
    np.testing.assert_array_equal(found.learned.targets[found.place].numpy(), np.eye(3)[Y])
    np.testing.assert_array_equal(found.learned.prior, np.zeros(3))


def test_weights_have_mean_one_and_equal_rows_are_merged():
    double = Dataset(np.r_[X, X[:10]], None, np.r_[Y, Y[:10]], np.full(60, 7.0))
    found = prepare(double, split(double, plan()), plan())
    assert len(found.learned) == N
    assert found.learned.total_weight == pytest.approx(60)
    counts = np.bincount(found.place)
    np.testing.assert_allclose(found.learned.weights, counts)
    np.testing.assert_array_equal(found.learned.counts, counts)
    np.testing.assert_array_equal(found.place[50:], found.place[:10])
    np.testing.assert_array_equal(found.learned.points[found.place].numpy(), double.X)
    grouped = replace(double, groups=np.arange(60) // 2, weights=np.linspace(1.0, 3.0, 60))
    assert prepare(grouped, split(grouped, plan()), plan()).learned.total_weight == pytest.approx(30)  # n is of groups


def test_the_rows_to_learn_from_decide_the_scale_and_the_prior():
    asked = plan(scale="standard", learn=learning.Auto(kernel_share=0.5))
    parts = split(rows(), asked)
    found = prepare(rows(), parts, asked)
    own = X[parts.learned]
    scaled = (X - own.mean(0)) / own.std(0)
    np.testing.assert_allclose(found.embedded.points[found.place], scaled[parts.solved], atol=1e-12)
    counts = np.bincount(Y[parts.learned], minlength=3)
    prior = (counts + 1 / 3) / (counts.sum() + 1)
    for part in (found.learned, found.embedded):
        np.testing.assert_allclose(part.prior, prior, rtol=1e-12)
    assert not np.allclose(prior, (np.bincount(Y[parts.solved], minlength=3) + 1 / 3) / 26)


def test_many_rows_for_features_are_not_merged(monkeypatch):
    monkeypatch.setattr("kernelwright.estimators.arrows.MERGE_UP_TO", 55)
    double = Dataset(np.r_[X, X[:10]], None, np.r_[Y, Y[:10]], np.ones(60))
    asked = replace(plan_of(EmbeddingClassifier(features=RandomFourier(10))), targets=ClassTargets(3))
    assert len(prepare(double, split(double, asked), asked).learned) == 60
    assert len(prepare(double, split(double, plan()), plan()).learned) == 50


def test_a_part_of_one_class_is_refused():
    y = np.r_[1, np.zeros(N - 1, dtype=int)]
    one = Dataset(X, None, y, np.ones(N))
    asked = plan(learn=Given(kernel_share=0.5))
    with pytest.raises(ValueError, match=r"Only one class is left among the 25 rows that kernel_share=0\.5"):
        prepare(one, split(one, asked), asked)


# learn and solve -------------------------------------------------------------------------------------------------


def test_what_is_solved_is_equation_5():
    asked = plan(learn=None, ridge=0.03)
    weights = RNG.uniform(0.5, 2.0, N)
    data = prepare(rows(weights), split(rows(weights), asked), asked)
    random = generator(0)
    choice = learn(data.learned, asked, Exact(), random)
    assert (choice.ridge, choice.history) == (0.03, [])
    assert np.isnan(choice.value)
    found = solve(choice, data.embedded, Exact(), random)
    points, w = data.embedded.points.numpy(), data.embedded.weights.numpy()
    K = np.exp(-0.5 * cdist(points, points, "sqeuclidean") / 1.5**2)
    V = np.linalg.solve(K + np.diag(0.03 * w.sum() / w), data.embedded.targets.numpy())
    np.testing.assert_allclose(found.coefficients, V, atol=1e-10)
    kept = embedded_rows(rows(weights), split(rows(weights), asked), data, np.ones(N, dtype=bool))
    embedding = embedding_of(found, choice, scaler=data.scaler, rows=kept, solver=Exact())
    new = X[:7] + 0.1
    k = np.exp(-0.5 * cdist(new, points, "sqeuclidean") / 1.5**2)
    np.testing.assert_allclose(embedding.outputs(new)[0], k @ V, atol=1e-10)
    assert (embedding.solver, embedding.precision, embedding.ridge, embedding.size) == ("exact", "double", 0.03, N)


def test_learning_starts_from_the_plan_and_reports_each_step():
    seen = []
    asked = plan(learn=learning.LeaveOneOut(optimizer=learning.LBFGS(4)), ridge=0.5, callback=seen.append)
    data = prepare(rows(), split(rows(), asked), asked)
    choice = learn(data.learned, asked, Exact(), generator(0))
    assert choice.history == seen
    assert seen[0].hyperparameters["ridge"] == pytest.approx(0.5)
    assert seen[0].hyperparameters["kernel.lengthscale"] == pytest.approx(1.5)
    assert choice.value == min(step.objective for step in seen)


def test_rows_that_the_embedding_was_solved_on_are_known():
    kept = np.zeros(60, dtype=bool)
    kept[RNG.permutation(60)[:N]] = True  # ten rows had no weight
    asked = plan(learn=Given(kernel_share=0.4, holdout_share=0.2))
    weights = RNG.uniform(0.5, 2.0, N)
    parts = split(rows(weights), asked)
    data = prepare(rows(weights), parts, asked)
    found = embedded_rows(rows(weights), parts, data, kept)
    np.testing.assert_array_equal(np.flatnonzero(found.given), np.flatnonzero(kept)[parts.solved])
    np.testing.assert_array_equal(found.share, np.ones(len(parts.solved)))
    np.testing.assert_array_equal(data.embedded.points[found.place].numpy(), X[parts.solved])
    own = weights[parts.solved]
    np.testing.assert_allclose(found.weights[found.place] / found.weights.sum(), own / own.sum())


# solvers and memory ----------------------------------------------------------------------------------------------


def test_the_solver_is_settled_by_the_number_of_rows(monkeypatch):
    monkeypatch.setattr("kernelwright.solvers.automatic.EXACT_UP_TO", 100)
    asked = plan(solver=solvers.Auto("single"))
    few, many = asked.solver_for(100), asked.solver_for(101)
    assert (type(few), few.precision) == (Exact, "single")
    assert (type(many), many.precision) == (Landmarks, "single")
    given = Herding(5)
    assert plan(solver=given).solver_for(10**6) is given
    explicit = plan_of(EmbeddingClassifier(features=RandomFourier(10)))
    assert isinstance(explicit.solver_for(10**6), Explicit)


def test_memory_is_refused_for_the_larger_of_learning_and_solving(monkeypatch):
    n = 1000
    solving, learning_takes = Exact().n_bytes(n), 7 * 8.0 * n**2
    assert learning_takes > solving
    monkeypatch.setattr("kernelwright.numerics.memory.free_memory", lambda: 1.05 * solving / 0.9)
    refuse_if_too_large(Exact(), n)
    with pytest.raises(MemoryBudgetError, match="An exact embedding of 1000 distinct rows"):
        refuse_if_too_large(Exact(), n, matrix_rows=n)
    refuse_if_too_large(Exact(), n, matrix_rows=100)  # mini-batches
    refuse_if_too_large(Landmarks(10), 10 * n, matrix_rows=100)
    with pytest.raises(MemoryBudgetError, match=r"solver='nystroem' with 2000 of 4000 rows"):
        refuse_if_too_large(Landmarks(2000), 4000)
    with pytest.raises(MemoryBudgetError):
        plan(learn="leave-one-out", solver="exact").solver_for(n)
    assert isinstance(plan(learn=None, solver="exact").solver_for(n), Exact)


def test_tensors_of_a_prepared_set_are_in_double_precision():
    found = prepare(rows(), split(rows(), plan()), plan()).learned
    assert {found.points.dtype, found.targets.dtype, found.weights.dtype, found.prior.dtype} == {torch.float64}


@pytest.mark.parametrize(
    "method", [learning.Folds(optimizer=learning.LBFGS(3)), learning.HeldOut(optimizer=learning.LBFGS(3))]
)
def test_what_is_learned_does_not_depend_on_what_groups_are_called(method):
    names = np.arange(N) // 3
    renamed = RNG.permutation(names.max() + 1)[names]
    found = [EmbeddingClassifier(Gaussian(1.5), learn=method).fit(X, Y, groups=groups) for groups in (names, renamed)]
    assert found[0].objective_ == pytest.approx(found[1].objective_, rel=1e-10)
    np.testing.assert_allclose(found[0].raw_outputs(X), found[1].raw_outputs(X), atol=1e-8)


def test_an_open_choice_is_settled_by_the_loss_of_the_plan_and_told(monkeypatch, caplog):
    seen = []

    def settled(self, found, kernel, data, ridge, loss, generator):
        seen.append(loss)
        return Tree(50)

    monkeypatch.setattr(solvers.Auto, "settled", settled)
    choice = Choice(Gaussian(), 0.1, 0.0, [], "")
    data = TrainingSet.of(torch.zeros(3, 1, dtype=torch.float64), torch.eye(3, dtype=torch.float64))
    made = plan()
    with progress(1):
        assert repr(made.settled(Landmarks(5), choice, data, torch.Generator())) == "Tree(leaf=50)"
        own = replace(made, loss=BRIER)
        own.settled(Landmarks(5), choice, data, torch.Generator())
    assert isinstance(seen[0], CalibratedLogLoss)
    assert seen[1] is BRIER
    assert any("takes the place of Landmarks(n=5)" in each for each in caplog.messages)


def test_dependent_rows_are_left_out_in_blocks_with_a_warning(monkeypatch):
    """Equal rows are merged and sorted: a block is told by the first of the rows that a point stands for."""
    seen = []

    def blocks(kernel, data, ridge, order, random):
        seen.append(order)
        return order // 10

    monkeypatch.setattr("kernelwright.estimators.arrows.dependent_blocks", blocks)
    copied = np.concatenate([X, X[:5]])
    made = plan(learn="leave-one-out")
    given = Dataset(copied, None, np.concatenate([Y, Y[:5]]), np.ones(N + 5), None)
    data = prepare(given, split(given, made), made)
    choice = Choice(Gaussian(), 0.1, 0.0, [], "")
    with pytest.warns(DependenceWarning, match=r"leaves out 5 blocks of consecutive rows in turn\. Pass groups="):
        found = made.heeded(choice, data, torch.Generator())
    at = found.embedded.points[np.argsort(seen[0].numpy())].numpy()
    np.testing.assert_array_equal(at, X)  # in the order in which they were given
    assert torch.equal(found.embedded.groups, seen[0] // 10)
    assert found.learned is found.embedded
    assert found.embedded.counts is None
    assert plan(learn=None).heeded(choice, data, torch.Generator()) is data  # nothing was learned from the rows
