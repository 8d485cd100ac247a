"""Settings for all tests: few and repeatable random examples, no network, data sets only on request."""

import ipaddress
import os
import signal
import socket
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings

from kernelwright.datasets import DataSetNotFoundError

settings.register_profile(
    "kernelwright",
    max_examples=25,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("kernelwright")

DATA, HIDDEN_DATA = "KERNELWRIGHT_DATA", "KERNELWRIGHT_HIDDEN_DATA"


def pytest_configure(config: pytest.Config) -> None:
    """Block the network, and hide data sets that another machine may not have.

    An audit hook sees all connections that Python makes, in forked processes too. Other processes are told by the
    environment: the data sets are the only part of the library that uses the network.
    """
    sys.addaudithook(refuse_network)
    os.environ["KERNELWRIGHT_OFFLINE"] = "1"
    os.environ["KERNELWRIGHT_CACHE"] = os.path.join(os.sep, "nonexistent", "kernelwright-cache")
    if DATA in os.environ:  # workers of pytest-xdist find it hidden already
        os.environ[HIDDEN_DATA] = os.environ.pop(DATA)


class NetworkRefusedError(RuntimeError):
    """Raised if a test uses the network. (Libraries would retry after an OSError.)"""


def refuse_network(event: str, arguments: tuple) -> None:
    if event in ("socket.connect", "socket.sendto"):
        connection, address = arguments
        # A datagram socket that is connected sends nothing: it is how one learns one's own address.
        harmless = event == "socket.connect" and connection.type == socket.SOCK_DGRAM
        host = address[0] if isinstance(address, tuple) and not harmless else None  # a path is no network either
    elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
        host = arguments[0]
    else:
        return
    if not is_here(host):
        raise NetworkRefusedError(
            f"A test asked the network for {host!r}. No test may: it would fail where there is none. A test that needs "
            "data sets takes the fixture data_folder."
        )


def is_here(host: str | bytes | None) -> bool:
    name = host.decode() if isinstance(host, bytes) else host
    if not name or name in ("localhost", socket.gethostname()):
        return True
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "data_folder" in getattr(item, "fixturenames", ()):
            item.add_marker("data")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item):
    try:
        return (yield)
    except DataSetNotFoundError as missing:
        if item.get_closest_marker("data") is None:
            raise
        pytest.skip(str(missing))


@pytest.fixture(autouse=True)
def _signal_handlers_stay():
    """Fail the test that leaves a signal handler behind, and restore the handlers: no later test is interrupted."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    after = {number: signal.getsignal(number) for number in before}
    for number, handler in before.items():
        signal.signal(number, handler)
    assert after == before


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture
def data_folder(monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of data sets; skip the test, with the reason, if the folder or a data set is missing."""
    folder = os.environ.get(HIDDEN_DATA)
    if not folder or not Path(folder).is_dir():
        pytest.skip(f"needs the data sets: {DATA} is {folder!r}, which is no folder")
    monkeypatch.setenv(DATA, folder)
    return Path(folder)
