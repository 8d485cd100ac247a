"""Models are restored to the bit, and files are written completely or not at all."""

import copy
import pickle
import re
import zipfile
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from torch import nn

import kernelwright as kw
from kernelwright import features, learning
from kernelwright.kernels import Gaussian, Laplace
from tests.cases import CASES, Cosine
from tests.persistence.models import MODELS, NEW, OwnNet, X, Y, embedding, network, pairs, round_trip, similarities


def test_the_error_has_a_public_name_and_a_well_known_parent():
    assert issubclass(kw.ModelFileError, ValueError)


def settings_of(model: Any) -> str:
    """Return all settings as text, without memory addresses; an index of columns is a list after loading."""
    text = re.sub(r"Index\((\[.*?\]), dtype='\w+'\)", r"\1", repr(clone(model).get_params()))
    return re.sub(r"\s+", " ", re.sub("0x[0-9a-f]+", "", text))


@pytest.mark.parametrize("name", MODELS)
def test_a_loaded_model_predicts_the_same_bits_and_can_do_all_that_a_model_can(name, tmp_path):
    case = MODELS[name]
    model = case.make()
    before = case.read(model)
    loaded = round_trip(model, tmp_path)
    np.testing.assert_array_equal(case.read(loaded), before)
    np.testing.assert_array_equal(case.read(pickle.loads(pickle.dumps(loaded))), before)
    np.testing.assert_array_equal(case.read(round_trip(loaded, tmp_path)), before)
    assert vars(loaded).keys() == vars(model).keys()
    if hasattr(model, "get_params"):
        assert settings_of(loaded) == settings_of(model)


@pytest.mark.parametrize("name", ["default", "network", "hyper ridge", "calibrated"])
def test_a_loaded_model_can_be_fitted_again(name, tmp_path):
    case = MODELS[name]
    model = case.make()
    loaded = clone(round_trip(model, tmp_path)).fit(X, Y)
    np.testing.assert_array_equal(case.read(loaded), case.read(clone(model).fit(X, Y)))


def test_explicit_features_go_on_with_batches_after_loading(tmp_path):
    model = MODELS["random Fourier"].make()
    loaded = round_trip(model, tmp_path)
    again = [each.partial_fit(NEW, Y[::-1]).predict_proba(X) for each in (model, loaded)]
    np.testing.assert_array_equal(*again)


@pytest.mark.parametrize("case", [case for case in CASES if "cosine" not in case.id], ids=lambda case: case.id)
def test_kernels_are_saved_by_themselves(case, tmp_path):
    kernel, points = case.make(), case.random_points(6)
    loaded = round_trip(kernel, tmp_path)
    np.testing.assert_array_equal(loaded(points), kernel(points))
    assert repr(loaded) == repr(kernel)
    names = [(name, p.requires_grad) for name, p in kernel.named_parameters()]
    assert [(name, p.requires_grad) for name, p in loaded.named_parameters()] == names


def test_feature_maps_and_learned_kernels_are_saved_by_themselves(tmp_path):
    learned = pairs(kw.HyperKernelRidge(random_state=0), similarities()).make().kernel_
    np.testing.assert_array_equal(round_trip(learned, tmp_path)(NEW, X), learned(NEW, X))
    landmarks = features.Nystroem(Laplace(), 7).fit(X)
    np.testing.assert_array_equal(round_trip(landmarks, tmp_path)(NEW), landmarks(NEW))


class TestModulesOfOnesOwn:
    def test_the_architecture_comes_from_the_caller_and_the_numbers_from_the_file(self, tmp_path):
        model = network(OwnNet(), training=kw.networks.Training(max_epochs=3, precision="double")).make()
        given = OwnNet()
        before = copy.deepcopy(given.state_dict())
        loaded = round_trip(model, tmp_path, module=given)
        np.testing.assert_array_equal(loaded.predict_proba(NEW), model.predict_proba(NEW))
        assert loaded.module_ is loaded.embedding_.network.module
        assert loaded.module_.first is loaded.module_.again
        assert loaded.module_.last.weight.dtype == torch.float64
        assert loaded.module is not given
        assert all(torch.equal(before[name], number) for name, number in given.state_dict().items())
        np.testing.assert_array_equal(
            clone(loaded).fit(X, Y).predict_proba(NEW), clone(model).fit(X, Y).predict_proba(NEW)
        )

    def test_without_it_the_sentence_says_to_pass_it(self, tmp_path):
        kw.save(network(OwnNet()).make(), tmp_path / "own.kw")
        with pytest.raises(kw.ModelFileError, match=r"your own module 'OwnNet'.*module=OwnNet\(\.\.\.\)"):
            kw.load(tmp_path / "own.kw")
        with pytest.raises(kw.ModelFileError, match=r"fit no module that was passed.*first\.weight \(4, 4\)"):
            kw.load(tmp_path / "own.kw", module=OwnNet(5))
        with pytest.raises(TypeError, match="must be a torch module"):
            kw.load(tmp_path / "own.kw", module=[OwnNet])

    def test_a_known_container_of_an_own_layer_is_passed_as_a_whole(self, tmp_path):
        def build() -> nn.Module:
            return nn.Sequential(nn.Linear(4, 4), OwnNet())

        model = network(build()).make()
        loaded = round_trip(model, tmp_path, module=build())
        np.testing.assert_array_equal(loaded.predict_proba(NEW), model.predict_proba(NEW))

    def test_a_layer_with_a_hook_is_not_one_that_the_file_could_restore(self, tmp_path):
        layers = nn.Sequential(nn.Linear(4, 3))
        layers[0].register_forward_hook(lambda module, inputs, output: 2.0 * output)
        with pytest.raises(kw.ModelFileError, match="module="):
            round_trip(layers, tmp_path)
        loaded = kw.load(tmp_path / "model.kw", module=layers)
        assert torch.equal(loaded(torch.ones(1, 4)), layers(torch.ones(1, 4)))

    def test_a_kernel_of_ones_own_works_alike_beside_a_network(self, tmp_path):
        models = [embedding(Gaussian() * Cosine(2.0), learn=learning.Auto(max_iter=3)).make(), network(OwnNet()).make()]
        loaded = round_trip(models, tmp_path, module=[OwnNet(), Cosine()])
        for model, again in zip(models, loaded, strict=True):
            np.testing.assert_array_equal(again.predict_proba(NEW), model.predict_proba(NEW))

    def test_a_network_on_another_device_is_loaded_to_the_cpu(self, tmp_path):
        model = network(hidden=(3,)).make()
        model.embedding_.network.device = "cuda"
        assert round_trip(model, tmp_path).embedding_.network.device == "cpu"


def test_settings_of_the_running_program_are_left_out_with_a_warning(tmp_path):
    training = kw.networks.Training(checkpoint=str(tmp_path / "run"))
    model = kw.EmbeddingNetworkClassifier(callback=print, training=training)
    with pytest.warns(UserWarning, match="callback is not part") as found:
        kw.save(make_pipeline(model, memory="cache"), tmp_path / "model.kw")
    loaded = kw.load(tmp_path / "model.kw")
    assert {str(warning.message).partition(" is not")[0].rpartition(".")[2] for warning in found} == {
        "callback",
        "checkpoint",
        "memory",
    }
    assert all(warning.filename == __file__ for warning in found)
    assert loaded.memory is loaded[0].callback is loaded[0].training.checkpoint is None


def test_a_disk_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "model.kw"
    kw.save(Gaussian(2.0), path)

    def full(*args: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(zipfile.ZipFile, "_write_end_record", full)
    with pytest.raises(OSError, match="No space left"):
        kw.save(Gaussian(3.0), path)
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == [path]
    assert float(kw.load(path).lengthscale) == pytest.approx(2.0)
    with pytest.raises(FileNotFoundError):
        kw.save(Gaussian(), tmp_path / "no such folder" / "model.kw")


def test_an_interrupt_while_saving_is_that_interrupt_and_leaves_nothing(tmp_path, monkeypatch):
    """Closing an archive whose member was just begun would raise an error of its own and hide the interrupt."""
    begin = zipfile.ZipFile.open
    begun = []

    def interrupted(*arguments: Any, **options: Any) -> Any:
        begun.append(begin(*arguments, **options))
        raise KeyboardInterrupt

    monkeypatch.setattr(zipfile.ZipFile, "open", interrupted)
    with pytest.raises(KeyboardInterrupt):
        kw.save(Gaussian(1.0), tmp_path / "kernel.kw")
    assert len(begun) == 1
    assert not list(tmp_path.iterdir())


def test_the_same_model_gives_the_same_bytes(tmp_path):
    model = MODELS["default"].make()
    for name in ("a", "b"):
        kw.save(model, tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_setting_that_is_newer_than_the_file_has_its_default(tmp_path):
    model = MODELS["default"].make()
    del model.__dict__["scale"]
    assert round_trip(model, tmp_path).get_params()["scale"] == kw.EmbeddingClassifier().scale
