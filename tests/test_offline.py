"""The tests do not use the network, and see data sets only on request."""

import os
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from kernelwright import datasets

ELSEWHERE = "192.0.2.1"  # kept for documentation: there is no such machine


def test_the_network_is_refused_at_once():
    with (
        socket.socket() as connection,
        pytest.raises(RuntimeError, match=r"A test asked the network for '192\.0\.2\.1'"),
    ):
        connection.connect((ELSEWHERE, 80))
    with pytest.raises(RuntimeError, match=r"asked the network for 'example\.com'"):
        urllib.request.urlopen("http://example.com", timeout=1)
    with socket.socket(type=socket.SOCK_DGRAM) as datagrams, pytest.raises(RuntimeError, match="asked the network"):
        datagrams.sendto(b"?", (ELSEWHERE, 53))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_processes_are_refused_too():
    child = os.fork()
    if not child:
        try:
            socket.getaddrinfo("example.com", 80)
        except RuntimeError:
            os._exit(3)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3


def test_this_machine_may_be_asked(tmp_path):
    for host in ("127.0.0.1", "localhost"):
        with socket.create_server(("127.0.0.1", 0)) as server:
            socket.create_connection((host, server.getsockname()[1])).close()
    if hasattr(socket, "AF_UNIX"):
        with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
            server.bind(str(tmp_path / "s"))
            server.listen()
            client.connect(str(tmp_path / "s"))


@pytest.mark.parametrize("name", ["heart", "covtype"])
def test_data_sets_are_hidden_from_tests_that_do_not_ask_for_them(name):
    with pytest.raises(datasets.DataSetNotFoundError, match="KERNELWRIGHT_OFFLINE is set"):
        datasets.load(name)


def test_other_processes_have_neither():
    code = "from kernelwright import datasets; datasets.load('heart')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "KERNELWRIGHT_OFFLINE is set" in done.stderr
    assert "KERNELWRIGHT_DATA is not set" in done.stderr


def test_a_test_that_asks_for_data_sets_has_them(data_folder, request):
    assert request.node.get_closest_marker("data")
    assert os.environ["KERNELWRIGHT_DATA"] == str(data_folder)
    found = [path.stem for path in data_folder.glob("*.npz")]
    assert len(datasets.load(found[0])[0])


TESTS = """
from kernelwright import datasets

def test_that_asks(data_folder):
    datasets.load("heart")

def test_that_does_not():
    datasets.load("heart")

def test_that_needs_none():
    datasets.load("wine")
"""


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["empty", "missing"])
def test_without_data_sets_only_a_test_that_asks_for_them_is_skipped(tmp_path, folder):
    (tmp_path / "empty").mkdir()
    (tmp_path / "test_it.py").write_text(TESTS)
    environment = os.environ | {"KERNELWRIGHT_DATA": str(tmp_path / folder)}
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-o", "addopts=-v", str(tmp_path / "test_it.py")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=Path(__file__).parents[1])
    assert "test_that_asks SKIPPED" in done.stdout
    assert "test_that_does_not FAILED" in done.stdout
    assert "test_that_needs_none PASSED" in done.stdout
    assert "KERNELWRIGHT_OFFLINE is set" in done.stdout
