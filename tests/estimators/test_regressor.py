import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone, is_regressor
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import kernelwright as kw
from kernelwright import EmbeddingRegressor, distributions, learning, solvers
from kernelwright.features import RandomFourier
from kernelwright.kernels import Gaussian, Spectrum

# A row of weight two is one observation, two equal rows are two: they differ wherever rows are left out.
NOT_COPIES = {
    f"check_sample_weight_equivalence_on_{kind}_data": "the scale leaves out rows, and a weight is one row"
    for kind in ("dense", "sparse")
}
PLAIN = EmbeddingRegressor(Gaussian(), learn=None, ridge=0.01, distribution="location-scale")
OBJECTS = EmbeddingRegressor(
    Gaussian(), learn=learning.Auto(max_iter=3), solver=solvers.Landmarks(30), distribution=distributions.Direct()
)


@parametrize_with_checks([EmbeddingRegressor(), PLAIN, OBJECTS], expected_failed_checks=lambda model: NOT_COPIES)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def wave(n, seed=0, noise=0.1):
    """A smooth mean, and noise that grows from left to right."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2))
    mean, spread = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1], noise * (2.2 + X[:, 0])
    return X, mean + spread * rng.normal(size=n), mean, spread


@pytest.fixture(scope="module")
def fitted():
    X, y, _, _ = wave(400)
    return EmbeddingRegressor(random_state=0).fit(X, y)


class TestDistribution:
    def test_means_and_deviations_are_the_true_ones(self, fitted):
        X, _, mean, spread = wave(500, seed=1)
        found, std = fitted.predict(X, return_std=True)
        assert np.sqrt(np.mean((found - mean) ** 2)) < 0.12  # half the noise
        assert np.corrcoef(np.log(std), np.log(spread))[0, 1] > 0.8
        assert np.exp(np.mean(np.log(std / spread))) == pytest.approx(1.0, abs=0.2)

    @pytest.mark.parametrize("distribution", ["location-scale", "direct", "stacked"])
    def test_intervals_cover_new_rows_also_where_noise_is_large(self, distribution):
        X, y, _, _ = wave(400)
        model = EmbeddingRegressor(distribution=distribution, random_state=0).fit(X, y)
        new, target, _, _ = wave(2000, seed=2)
        low, high = model.interval(new, 0.9).T
        covered = (target >= low) & (target <= high)
        assert covered.mean() == pytest.approx(0.9, abs=0.05)
        halves = [covered[new[:, 0] < 0].mean(), covered[new[:, 0] >= 0].mean()]
        assert min(halves) > 0.82

    def test_scores_are_better_than_those_of_a_normal_with_one_variance(self, fitted):
        X, y, mean, _ = wave(1000, seed=3)
        constant = stats.norm(mean, np.std(y - mean))  # even with the true mean
        assert -fitted.log_density(X, y).mean() < -constant.logpdf(y).mean()

    def test_quantiles_cdf_and_samples_agree(self, fitted):
        X, _, _, _ = wave(20, seed=4)
        levels = np.linspace(0.05, 0.95, 19)
        quantiles = fitted.quantile(X, levels)
        assert quantiles.shape == (20, 19)
        assert np.all(np.diff(quantiles) > 0)
        assert fitted.quantile(X, 0.5) == pytest.approx(quantiles[:, 9])
        for row in range(3):
            assert fitted.cdf(X[row : row + 1], quantiles[row])[0] == pytest.approx(levels, abs=1e-6)
        sample = fitted.sample(X, 1500, random_state=0)
        assert sample.shape == (20, 1500)
        assert np.abs(np.quantile(sample, 0.9, axis=1) - quantiles[:, 17]).max() < 0.15
        assert sample.mean(1) == pytest.approx(fitted.predict(X), abs=0.05)

    def test_crps_is_that_of_its_samples(self, fitted):
        scoringrules = pytest.importorskip("scoringrules")
        X, y, _, _ = wave(10, seed=5)
        sample = fitted.quantile(X, (np.arange(500) + 0.5) / 500)
        assert fitted.crps(X, y) == pytest.approx(scoringrules.crps_ensemble(y, sample, backend="numpy"), rel=0.01)

    def test_far_from_the_data_it_is_the_distribution_of_all_targets(self):
        X = np.random.default_rng(0).uniform(-2, 2, (300, 1))  # an even function has no linear trend
        y = np.cos(3 * X[:, 0]) + 0.1 * np.random.default_rng(1).normal(size=300)
        model, far = EmbeddingRegressor(random_state=0).fit(X, y), np.full((1, 1), 500.0)
        assert model.support(far)[0] < 1e-6
        assert model.quantile(far, [0.1, 0.5, 0.9])[0] == pytest.approx(np.quantile(y, [0.1, 0.5, 0.9]), abs=0.06)
        mean, std = model.predict(far, return_std=True)
        assert (mean[0], std[0]) == pytest.approx((y.mean(), y.std()), abs=0.06)

    def test_where_a_trend_was_chosen_the_location_follows_it_and_the_spread_is_the_marginal_one(self):
        rng = np.random.default_rng(2)
        X = rng.normal(size=(200, 3))
        y = 2 * X[:, 0] + 0.2 * rng.normal(size=200)
        model = EmbeddingRegressor(random_state=0).fit(X, y)
        with pytest.warns(kw.ExtrapolationWarning):
            mean, std = model.predict([[20.0, 0.0, 0.0]], return_std=True)
        assert mean[0] == pytest.approx(40, abs=4)
        assert std[0] > 0.9 * y.std()

    @pytest.mark.parametrize("seed", [1, 4])
    def test_beyond_the_data_a_logarithm_lets_neither_means_nor_scores_explode(self, seed):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(250, 5))
        y = np.exp(X @ [1.0, -1.0, 0.5, 0.3, 0.0] + 0.3 * rng.normal(size=250))
        near = X[:, 0] < 0.4
        model = EmbeddingRegressor(random_state=0).fit(X[near], y[near])
        assert model.links_[0].scale.target_map.word == "log"
        far = np.argsort(-X[:, 0])[:60]
        errors, guess = model.predict(X[far]) - y[far], np.median(y[near])
        assert np.square(errors).mean() < 0.25 * np.square(y[far] - guess).mean()
        assert model.crps(X[far], y[far]).mean() < 0.3 * np.abs(y[far] - guess).mean()

    def test_two_modes_are_found_by_the_direct_estimate(self):
        rng = np.random.default_rng(0)
        X = rng.uniform(size=(600, 1))
        y = rng.choice([-1, 1], 600) * (1 + X[:, 0]) + 0.1 * rng.normal(size=600)
        stacked = EmbeddingRegressor(random_state=0).fit(X[:400], y[:400])
        smooth = EmbeddingRegressor(distribution="location-scale", random_state=0).fit(X[:400], y[:400])
        assert stacked.crps(X[400:], y[400:]).mean() < 0.99 * smooth.crps(X[400:], y[400:]).mean()
        assert np.diff(stacked.cdf([[0.5]], [-0.7, 0.7]))[0, 0] < 0.2  # little mass between the modes


class TestTargets:
    def test_counts_get_mass_at_whole_numbers(self):
        rng = np.random.default_rng(0)
        X = rng.uniform(0, 2, (600, 1))
        y = rng.poisson(np.exp(X[:, 0]))
        model = EmbeddingRegressor(random_state=0).fit(X[:400], y[:400])
        new, target = X[400:], y[400:]
        assert np.all(model.quantile(new, [0.1, 0.9]) % 1 == 0)
        values = np.arange(0.0, y[:400].max() + 1)
        mass = np.exp([model.log_density(new[:5], np.full(5, value)) for value in values])
        assert mass.sum(0) == pytest.approx(np.ones(5))
        truth = stats.poisson.pmf(values[:, None], np.exp(new[:5, 0]))
        assert np.abs(mass - truth).max() < 0.12
        known = target <= y[:400].max()
        loss = -model.log_density(new[known], target[known]).mean()
        ideal = -stats.poisson.logpmf(target[known], np.exp(new[known, 0])).mean()
        assert loss < ideal + 0.15

    def test_a_skewed_positive_target_is_learned_by_its_logarithm_and_stays_positive(self):
        rng = np.random.default_rng(1)
        X = rng.normal(size=(500, 2))
        y = np.exp(1.5 * X[:, 0] + 0.4 * rng.normal(size=500))
        model = EmbeddingRegressor(random_state=0).fit(X[:350], y[:350])
        assert model.links_[0].scale.target_map.word == "log"
        assert np.all(model.quantile(X[350:], [1e-6, 0.01]) >= 0)
        plain = EmbeddingRegressor(distribution=distributions.Stacked(transform="identity"), random_state=0)
        plain.fit(X[:350], y[:350])
        assert model.crps(X[350:], y[350:]).mean() < plain.crps(X[350:], y[350:]).mean()
        median = np.exp(1.5 * X[350:, 0])  # quantiles carry over exactly
        assert np.median(model.quantile(X[350:], 0.5) / median) == pytest.approx(1.0, abs=0.08)
        mean = median * np.exp(0.08)  # means need the residuals
        assert np.median(model.predict(X[350:]) / mean) == pytest.approx(1.0, abs=0.08)

    def test_what_is_learned_by_its_root_is_never_negative_and_its_density_integrates_to_one(self):
        rng = np.random.default_rng(3)
        X = rng.normal(size=(200, 1))
        y = np.square(3.0 + 0.5 * X[:, 0] + 0.2 * rng.normal(size=200))
        how = distributions.Stacked(transform="root")
        model = EmbeddingRegressor(distribution=how, random_state=0).fit(X, y)
        assert y.std() < 0.5 * y.mean()  # so the target alone states no range
        assert model.target_range_.tolist() == [0.0, np.inf]
        t = np.linspace(-5.0, 60.0, 20001)
        density = np.exp(model.log_density(np.repeat(X[:1], len(t), axis=0), t))
        assert np.all(density[t < 0] == 0)
        assert np.sum(density) * (t[1] - t[0]) == pytest.approx(1.0, abs=2e-3)

    def test_a_stated_range_is_kept(self):
        rng = np.random.default_rng(2)
        X = rng.normal(size=(300, 1))
        y = np.clip(0.5 + 0.4 * X[:, 0] + 0.2 * rng.normal(size=300), 0, 1)
        model = EmbeddingRegressor(distribution=distributions.Stacked(low=0, high=1), random_state=0).fit(X, y)
        found = model.quantile(X, [0.0, 0.001, 0.999, 1.0])
        assert (found.min(), found.max()) == (0.0, 1.0)

    @pytest.mark.parametrize("how", [distributions.Stacked, distributions.LocationScale, distributions.Direct])
    @pytest.mark.parametrize("kind", ["zeros", "censored"])
    def test_mass_at_an_end_of_the_targets_is_inside_of_intervals(self, how, kind):
        random = np.random.default_rng(0)
        X = random.uniform(-2, 2, (800, 1))
        y = np.sin(2 * X[:, 0]) + 0.5 * random.normal(size=800)
        if kind == "zeros":
            y = np.where(random.uniform(size=800) < 0.4, 0.0, np.exp(y))
            model = EmbeddingRegressor(distribution=how(), learn="median").fit(X[:300], y[:300])
        else:
            y = np.clip(y, -0.5, 0.5)
            model = EmbeddingRegressor(distribution=how(low=-0.5, high=0.5), learn="median").fit(X[:300], y[:300])
        low, high = model.interval(X[300:]).T
        inside = (low <= y[300:]) & (y[300:] <= high)
        assert inside.mean() > 0.87
        at_end = np.isin(y[300:], [0.0] if kind == "zeros" else [-0.5, 0.5])
        assert inside[at_end].mean() > 0.87
        assert np.isin(low, [0.0, -0.5]).any()  # the end itself

    def test_several_targets_keep_the_dependence_of_their_residuals(self):
        rng = np.random.default_rng(3)
        X, noise = rng.normal(size=(400, 2)), rng.normal(size=(400, 1))
        Y = np.column_stack([X[:, 0], np.sin(X[:, 1])]) + 0.3 * noise * [1, -1] + 0.05 * rng.normal(size=(400, 2))
        model = EmbeddingRegressor(random_state=0).fit(X, Y)
        assert model.predict(X[:7]).shape == (7, 2)
        assert model.quantile(X[:7], [0.1, 0.5, 0.9]).shape == (7, 2, 3)
        assert model.interval(X[:7]).shape == (7, 2, 2)
        assert model.crps(X[:7], Y[:7]).shape == model.log_density(X[:7], Y[:7]).shape == (7, 2)
        sample = model.sample(X[:3], 2000, random_state=0)
        assert sample.shape == (3, 2, 2000)
        assert np.corrcoef(sample[0])[0, 1] < -0.8
        alone = EmbeddingRegressor(model.kernel_, learn=None, ridge=model.ridge_, random_state=0)
        alone.fit(model.scaler_.transform(X), Y[:, 0])
        assert alone.predict(model.scaler_.transform(X[:50])) == pytest.approx(model.predict(X[:50])[:, 0], abs=0.02)
        assert model.score(X, Y) > 0.8

    def test_samples_depend_on_each_other_as_the_weighted_rows_do(self):
        """Half of the rows have residuals of opposite signs, but hardly any weight."""
        rng = np.random.default_rng(0)
        X, e = rng.normal(size=(300, 1)), rng.normal(size=300)
        heavy = np.arange(300) < 150
        Y = np.column_stack([e, np.where(heavy, e, -e) + 0.2 * rng.normal(size=300)])
        model = EmbeddingRegressor(Gaussian(1.0), learn=None, ridge=1.0, distribution="location-scale", random_state=0)
        drawn = model.fit(X, Y, np.where(heavy, 1.0, 0.01)).sample(X[:20], 500)
        assert np.mean([np.corrcoef(row)[0, 1] for row in drawn]) > 0.85
        levels = model.cdf(X[:20], 0.0)  # each target keeps its own distribution
        assert (drawn <= 0).mean(2) == pytest.approx(levels, abs=0.1)


class TestLikeScikitLearn:
    X, y = load_diabetes(return_X_y=True)

    def test_it_is_better_than_ridge_or_a_forest_on_a_real_table(self):
        ours = cross_val_score(EmbeddingRegressor(random_state=0), self.X, self.y, cv=3).mean()
        forest = cross_val_score(RandomForestRegressor(100, random_state=0), self.X, self.y, cv=3).mean()
        ridge = cross_val_score(RidgeCV(np.logspace(-3, 3, 7)), self.X, self.y, cv=3).mean()
        assert ours > forest
        assert ours > ridge - 0.02

    def test_pipelines_grids_clones_and_transformed_targets(self):
        X, y, mean, _ = wave(120)
        assert is_regressor(EmbeddingRegressor())
        grid = GridSearchCV(
            make_pipeline(StandardScaler(), EmbeddingRegressor(random_state=0)),
            {"embeddingregressor__learn__max_iter": [1, 4], "embeddingregressor__distribution": ["location-scale"]},
            cv=2,
        ).fit(X, y)
        assert grid.best_score_ > 0.5
        model = TransformedTargetRegressor(EmbeddingRegressor(random_state=0), func=np.arcsinh, inverse_func=np.sinh)
        assert np.sqrt(np.mean((model.fit(X, y).predict(X) - mean) ** 2)) < 0.3
        distribution = distributions.Stacked(low=-9)
        assert clone(EmbeddingRegressor(distribution=distribution)).distribution.low == -9

    def test_frames_keep_their_names(self):
        X, y, _, _ = wave(60)
        frame = pd.DataFrame(X, columns=["a", "b"])
        model = EmbeddingRegressor(random_state=0).fit(frame, pd.Series(y))
        assert model.feature_names_in_.tolist() == ["a", "b"]
        assert model.relevance().rows[0].name == "a"

    def test_saved_and_loaded_it_answers_the_same(self, fitted, tmp_path):
        kw.save(fitted, tmp_path / "model.kw")
        loaded, X = kw.load(tmp_path / "model.kw"), wave(30, seed=6)[0]
        assert np.array_equal(loaded.quantile(X, [0.1, 0.5]), fitted.quantile(X, [0.1, 0.5]))
        assert np.array_equal(loaded.predict(X), fitted.predict(X))

    def test_warm_starts_and_callbacks(self):
        X, y, _, _ = wave(150)
        steps = []
        model = EmbeddingRegressor(warm_start=True, callback=steps.append, random_state=0).fit(X, y)
        first = len(steps)
        assert first == len(model.history_) > 5
        assert len(model.fit(X, y).history_) < first

    def test_a_precomputed_kernel_is_the_same_embedding(self):
        X, y, _, _ = wave(100)
        settings = {"learn": None, "ridge": 1e-3, "random_state": 0}
        kernel = Gaussian(0.7)
        vectors = EmbeddingRegressor(kernel, **settings).fit(X[:80], y[:80])
        matrix = EmbeddingRegressor("precomputed", **settings).fit(kernel(X[:80]), y[:80])
        new = kernel(X[80:], X[:80])
        assert matrix.predict(new) == pytest.approx(vectors.predict(X[80:]))
        assert matrix.quantile(new, 0.9) == pytest.approx(vectors.quantile(X[80:], 0.9))


class TestStrings:
    def test_numbers_are_predicted_from_strings(self):
        rng = np.random.default_rng(0)
        words = ["".join(rng.choice(list("ab"), size=12)) for _ in range(240)]
        y = np.array([word.count("aa") - 0.5 * word.count("bb") for word in words]) + 0.2 * rng.normal(size=240)
        model = EmbeddingRegressor(Spectrum(k=2), random_state=0).fit(words[:160], y[:160])
        assert model.score(words[160:], y[160:]) > 0.8
        low, high = model.interval(words[160:]).T
        assert 0.75 < np.mean((low <= y[160:]) & (y[160:] <= high)) <= 1.0
        both = EmbeddingRegressor(Spectrum(k=2), random_state=0).fit(words[:160], np.column_stack([y, -y])[:160])
        assert both.predict(words[160:]) == pytest.approx(np.outer(model.predict(words[160:]), [1, -1]), abs=0.2)


class TestAgainstRefits:
    def test_leave_one_out_locations_are_those_of_refits(self):
        X, y, _, _ = wave(40)
        kernel, ridge = Gaussian(0.8), 0.003
        model = EmbeddingRegressor(kernel, learn=None, ridge=ridge, random_state=0).fit(X, y)
        scale = model.links_[0].scale
        encoded = scale.encode(y)
        rows = model.left_out_[0]
        order = np.argsort(rows.y)
        found = rows.location[order]
        expected = []
        for row in np.argsort(y):
            rest = np.arange(40) != row
            A = kernel(X[rest]) + 40 * ridge * np.eye(39)
            expected.append(kernel(X[row : row + 1], X[rest])[0] @ np.linalg.solve(A, encoded[rest]))
        assert found == pytest.approx(np.array(expected), abs=1e-8)

    @pytest.mark.parametrize("solver", [solvers.Landmarks(60), solvers.Fourier(150), solvers.Herding(80)], ids=str)
    def test_other_solvers_are_close_to_the_exact_one(self, solver):
        X, y, _, _ = wave(500)
        settings = {"scale": "standard", "random_state": 0}
        exact = EmbeddingRegressor(Gaussian("median"), **settings).fit(X, y)
        model = EmbeddingRegressor(Gaussian("median"), solver=solver, **settings).fit(X, y)
        new, target, truth, _ = wave(500, seed=7)
        errors = [np.sqrt(np.mean((each.predict(new) - truth) ** 2)) for each in (exact, model)]
        assert errors[1] < errors[0] + 0.1
        assert model.crps(new, target).mean() < 1.25 * exact.crps(new, target).mean()
        low, high = model.interval(new).T
        assert np.mean((target >= low) & (target <= high)) > 0.8

    @pytest.mark.parametrize("learn", ["rademacher", "held-out", "leave-one-out", "folds", "cross-validation"])
    def test_all_ways_to_learn_are_better_than_the_mean(self, learn):
        X, y, _, _ = wave(200)
        model = EmbeddingRegressor(Gaussian("median"), scale="standard", learn=learn, random_state=0).fit(X, y)
        new, _, truth, _ = wave(300, seed=8)
        assert np.mean((model.predict(new) - truth) ** 2) < 0.2 * np.var(truth)

    def test_explicit_features_learn_too(self):
        X, y, _, _ = wave(400)
        model = EmbeddingRegressor(features=RandomFourier(200), scale="standard", random_state=0).fit(X, y)
        new, _, truth, _ = wave(300, seed=9)
        assert np.mean((model.predict(new) - truth) ** 2) < 0.05 * np.var(truth)


class TestWeightsAndGroups:
    def test_rows_of_weight_zero_are_as_if_absent(self):
        X, y, _, _ = wave(120)
        weights = np.ones(120)
        weights[80:] = 0
        spoiled = np.where(weights > 0, y, 1e6)
        first = EmbeddingRegressor(random_state=0).fit(X, spoiled, sample_weight=weights)
        second = EmbeddingRegressor(random_state=0).fit(X[:80], y[:80])
        assert first.predict(X) == pytest.approx(second.predict(X), abs=1e-8)

    def test_a_common_factor_of_weights_changes_nothing(self):
        X, y, _, _ = wave(100)
        weights = np.random.default_rng(0).uniform(0.5, 2, 100)
        models = [EmbeddingRegressor(random_state=0).fit(X, y, sample_weight=c * weights) for c in (1, 64)]
        assert models[0].quantile(X, 0.9) == pytest.approx(models[1].quantile(X, 0.9), abs=1e-8)

    def test_heavy_rows_pull_the_mean(self):
        X = np.zeros((100, 1)) + np.arange(100)[:, None] % 2
        y = np.r_[np.zeros(50), np.ones(50)] + 0.01 * np.random.default_rng(0).normal(size=100)
        model = EmbeddingRegressor(random_state=0).fit(X, y, sample_weight=np.r_[np.ones(50), np.full(50, 9.0)])
        assert model.predict([[0.0], [1.0]]) == pytest.approx(np.full(2, 0.9), abs=0.03)

    def test_groups_are_left_out_together(self):
        rng = np.random.default_rng(0)
        centres = rng.normal(size=(30, 3))
        groups = np.repeat(np.arange(30), 10)
        X = centres[groups] + 0.01 * rng.normal(size=(300, 3))
        y = rng.normal(size=30)[groups] + 0.1 * rng.normal(size=300)  # nothing to learn about a new group
        with_groups = EmbeddingRegressor(random_state=0).fit(X, y, groups=groups)
        without = EmbeddingRegressor(random_state=0).fit(X, y)
        new = rng.normal(size=(200, 3))
        assert with_groups.predict(new, return_std=True)[1].mean() > 0.8
        rows = with_groups.left_out_[0], without.left_out_[0]
        spread = [np.std(each.location - (each.y - each.y.mean()) / each.y.std()) for each in rows]
        assert spread[0] > 0.8 > 0.3 > spread[1]


class TestInput:
    X, y, _, _ = wave(40)

    def test_rows_without_a_target_are_left_out(self):
        y = self.y.copy()
        y[[3, 7]] = np.nan
        with pytest.warns(UserWarning, match="2 of 40 rows have no target and are left out"):
            model = EmbeddingRegressor(random_state=0).fit(self.X, y)
        there = ~np.isnan(y)
        assert model.predict(self.X) == pytest.approx(
            EmbeddingRegressor(random_state=0).fit(self.X[there], y[there]).predict(self.X)
        )

    @pytest.mark.parametrize(
        ("y", "message"),
        [
            (np.r_[np.inf, np.zeros(39)], "infinity, first at row 0"),
            (["1.5"] * 39 + ["cheap"], "Got 'cheap' at row 39"),
            (np.full(40, np.datetime64("2020-01-01")), "Got dates"),
            (np.r_[1e300, np.zeros(39)], "Divide the target"),
            (np.full(40, np.nan), "contains NaN"),
        ],
        ids=["infinity", "text", "dates", "huge", "nothing"],
    )
    def test_targets_that_are_no_numbers_are_refused(self, y, message):
        with pytest.raises(ValueError, match=message):
            EmbeddingRegressor().fit(self.X, y)

    def test_one_value_is_predicted_with_certainty(self):
        model = EmbeddingRegressor(random_state=0).fit(self.X, np.full(40, 3.5))
        mean, std = model.predict(self.X, return_std=True)
        assert np.all(mean == 3.5)
        assert np.all(std == 0)

    @pytest.mark.parametrize("n", [2, 3, 5])
    def test_a_handful_of_rows_is_predicted_carefully(self, n):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = EmbeddingRegressor(random_state=0).fit(self.X[:n], self.y[:n])
        assert np.all(np.abs(model.predict(self.X) - self.y[:n].mean()) <= 2 * np.ptp(self.y[:n]))
        assert np.isfinite(model.quantile(self.X, [0.1, 0.9])).all()
