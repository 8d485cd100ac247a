"""The command line: the only part of the package that prints."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Sequence
from typing import Annotated, Any

import typer

import kernelwright
from kernelwright.cli import kernels, papers, tabular
from kernelwright.cli.screen import caught_warnings, note, say, tell
from kernelwright.numerics.memory import lacked_memory

__all__ = ["app", "main", "run"]

# Exit statuses besides 0; typer also uses 1 for a closed pipe.
INPUT, PIPE, INSIDE = 2, 1, 70

app = typer.Typer(
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",  # joins the lines of a paragraph
    help="Learn kernels from data: class probabilities for tables, and similarity functions from known similarities.",
)


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False) -> None:
    if version:
        say(kernelwright.__version__)
        raise typer.Exit


app.command("fit")(tabular.fit)
app.command("predict")(tabular.predict)
app.command("evaluate")(tabular.evaluate)
app.command("learn-kernel")(kernels.learn_kernel)
app.command("apply-kernel")(kernels.apply_kernel)
app.command("report")(tabular.report)
app.command("demo")(papers.demo)
app.command("datasets")(papers.datasets)
app.command("reproduce")(papers.reproduce)
app.command("bench")(papers.bench)


def main() -> None:
    """Run the command line and exit."""
    for stream in (sys.stdout, sys.stderr):
        if (reconfigure := getattr(stream, "reconfigure", None)) is not None:
            reconfigure(errors="replace")  # a terminal that lacks a character is not an input error
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _stop)
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _stop)
    # Python reports some exceptions here and then drops them: those from destructors, and those from compiled code that
    # calls PyErr_Print, as modules built on NumPy do during their import.
    sys.unraisablehook, sys.excepthook = _unraisable, _uncaught
    sys.exit(run(sys.argv[1:]))


class Stop(BaseException):
    """Raised by Ctrl-C or a scheduler's SIGTERM: unfinished files are removed, then the program ends.

    Not a KeyboardInterrupt, which only ends the current stage of training, and not a SystemExit, on which PyErr_Print
    would end the process immediately.
    """

    asked: signal.Signals | None = None  # the last signal, kept even if the exception is dropped


def _stop(number: int, _: Any) -> None:
    Stop.asked = signal.Signals(number)
    raise Stop


def _unraisable(lost: Any) -> None:
    if isinstance(lost.exc_value, Stop):
        _ask_again()
    else:
        sys.__unraisablehook__(lost)


def _uncaught(kind: Any, error: BaseException, trace: Any) -> None:
    if isinstance(error, Stop):
        _ask_again()
    else:
        sys.__excepthook__(kind, error, trace)


def _ask_again() -> None:
    threading.Timer(0.02, os.kill, (os.getpid(), Stop.asked)).start()


def run(arguments: Sequence[str]) -> int:
    """Run a command and return its exit status; an input error is one sentence on standard error and status 2.

    The only exception that reaches the caller is the ImportError of a library that does not fit into memory.
    """
    try:
        result = _told(list(arguments))
        sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort, Stop):
        return _stopped()
    except SystemExit as end:  # typer's answer to a closed pipe
        result = end.code
    except BrokenPipeError:  # `| head` has closed the pipe; nothing more can be written
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE
    except Exception as error:
        if Stop.asked is not None:
            return _stopped()  # for example, an interrupted import
        if lacked_memory(error):
            raise  # kernelwright.__main__ says how much memory is needed, and ends the process at once
        return _tell(error)
    if result == 128 + signal.SIGINT:  # typer's answer to a KeyboardInterrupt
        return _stopped()
    return result if isinstance(result, int) else 0


def _told(arguments: list[str]) -> Any:
    """Run a command, and print its warnings, even if it fails."""
    with caught_warnings() as found:
        try:
            # Not app(...) itself, which would install its own exception hook.
            return typer.main.get_command(app)(arguments, prog_name="kernelwright", standalone_mode=False)
        finally:
            tell(found)


def _stopped() -> int:
    """Return the exit status that a shell uses for a command ended by a signal."""
    if Stop.asked is not None:
        signal.signal(Stop.asked, signal.SIG_IGN)  # ignore further signals while the program ends
    note("kernelwright: stopped.")
    return 128 + (Stop.asked or signal.SIGINT)


def _tell(error: Exception) -> int:
    """Print one sentence about an error, and return the exit status."""
    status = INPUT
    if (in_words := getattr(error, "format_message", None)) is not None:  # an error in the command line itself
        if not (said := in_words()):
            return status  # no arguments: the help has already been printed
        where = getattr(getattr(error, "ctx", None), "command_path", "kernelwright")
        sentence = f"{said} See {where} --help."
    elif isinstance(error, OSError):
        sentence = _about_file(error)
    elif isinstance(error, MemoryError) or "can't allocate memory" in str(error):  # the second is raised by torch
        sentence = str(error) or "There is not enough memory for this table. Use fewer rows."
    elif isinstance(error, ValueError):
        sentence = str(error)
    else:
        status = INSIDE
        sentence = f"This is a bug in kernelwright: {type(error).__name__}: {error}"
        if "KERNELWRIGHT_TRACEBACK" in os.environ:
            raise error
        sentence += ". Set KERNELWRIGHT_TRACEBACK=1 to see where."
    note(f"kernelwright: {' '.join(sentence.split())}")
    return status


def _about_file(error: OSError) -> str:
    if error.filename is None or error.strerror is None:
        return str(error.strerror or error) + "."
    if isinstance(error, FileNotFoundError):
        return f"There is no file {error.filename}."
    return f"Cannot use {error.filename}: {error.strerror}."
