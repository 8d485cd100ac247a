"""The command line: the only room that prints."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Sequence
from typing import Annotated, Any

import typer

import kernelwright
from kernelwright.cli import classify, kernels, papers
from kernelwright.cli.screen import note, say

__all__ = ["app", "main", "run"]

# Exit statuses besides 0; typer has 1 for a closed pipe, too. The last two are those of a shell for these signals.
INPUT, PIPE, INSIDE, STOPPED, TERMINATED = 2, 1, 70, 130, 143

app = typer.Typer(
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",  # lines of a paragraph belong together
    help="Kernels made from data: class probabilities for tables, and similarity functions from similarity tables.",
)


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False) -> None:
    if version:
        say(kernelwright.__version__)
        raise typer.Exit


app.command("fit")(classify.fit)
app.command("predict")(classify.predict)
app.command("evaluate")(classify.evaluate)
app.command("learn-kernel")(kernels.learn_kernel)
app.command("apply-kernel")(kernels.apply_kernel)
app.command("report")(classify.report)
app.command("demo")(papers.demo)
app.command("datasets")(papers.datasets)
app.command("reproduce")(papers.reproduce)
app.command("bench")(papers.bench)


def main() -> None:
    """Entry point."""
    for stream in (sys.stdout, sys.stderr):
        if (reconfigure := getattr(stream, "reconfigure", None)) is not None:
            reconfigure(errors="replace")  # a terminal that lacks a letter is no fault of the input
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _stop)
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _stop)
    sys.unraisablehook = _stop_later
    sys.exit(run(sys.argv[1:]))


def _stop(number: int, _: Any) -> None:
    """Ctrl-C, or a scheduler that wants its machine back: what is being written is cleared away, then the end.

    Not by a KeyboardInterrupt, which learning takes for "that will do" and goes on to the next step.
    """
    raise SystemExit(TERMINATED if number == signal.SIGTERM else STOPPED)


def _stop_later(lost: Any) -> None:
    """A signal that came while an object was cleared away would be told and forgotten: it comes once more."""
    if isinstance(lost.exc_value, SystemExit) and lost.exc_value.code in (STOPPED, TERMINATED):
        number = signal.SIGTERM if lost.exc_value.code == TERMINATED else signal.SIGINT
        threading.Timer(0.02, os.kill, (os.getpid(), number)).start()
    else:
        sys.__unraisablehook__(lost)


def run(arguments: Sequence[str]) -> int:
    """Run a command and give its exit status: a fault of the input is one sentence on standard error and status 2."""
    try:
        result = app(list(arguments), prog_name="kernelwright", standalone_mode=False)
        sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort):
        result = STOPPED
    except SystemExit as stop:
        result = stop.code
    except BrokenPipeError:  # `| head` has read enough; nothing more can be said there
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE
    except Exception as error:
        return _tell(error)
    if result in (STOPPED, TERMINATED):
        note("kernelwright: stopped.")
    return result if isinstance(result, int) else 0


def _tell(error: Exception) -> int:
    """One sentence about an error."""
    status = INPUT
    if (in_words := getattr(error, "format_message", None)) is not None:  # of the command line itself
        if not (said := in_words()):
            return status  # no arguments at all: the help has been printed
        where = getattr(getattr(error, "ctx", None), "command_path", "kernelwright")
        sentence = f"{said} See {where} --help."
    elif isinstance(error, OSError):
        sentence = _about_file(error)
    elif isinstance(error, MemoryError):
        sentence = str(error) or "There is not enough memory for this table. Take a part of its rows."
    elif isinstance(error, ValueError):
        sentence = str(error)
    else:
        status = INSIDE
        sentence = f"This should not have happened, and is a fault of kernelwright: {type(error).__name__}: {error}"
        if "KERNELWRIGHT_TRACEBACK" in os.environ:
            raise error
        sentence += ". With KERNELWRIGHT_TRACEBACK=1 it says where."
    note(f"kernelwright: {' '.join(sentence.split())}")
    return status


def _about_file(error: OSError) -> str:
    if error.filename is None or error.strerror is None:
        return str(error.strerror or error) + "."
    if isinstance(error, FileNotFoundError):
        return f"There is no file {error.filename}."
    return f"Cannot use {error.filename}: {error.strerror}."
