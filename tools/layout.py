"""Check the layout of the package: unique class names, and files and functions of a readable size.

``python -m tools.layout [PACKAGE]`` prints everything that breaks a rule, and fails if there is any; ``make lint`` runs
it. The direction of imports is checked by import-linter.
"""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "kernelwright"


@dataclass(frozen=True)
class Rules:
    """The rules of the layout; paths are relative to the package."""

    file_lines: int = 400
    estimator_lines: int = 300
    function_lines: int = 50  # of the body, without the docstring
    constructor_arguments: int = 15
    flat_modules: int = 4  # next to the packages, including __main__
    # Public classes that share a name, because their namespaces differ: class name -> modules.
    shared: dict[str, frozenset[str]] = field(
        default_factory=lambda: {
            "Auto": frozenset({"learning", "solvers"}),
            "Gaussian": frozenset({"kernels", "hyper"}),
            "Polynomial": frozenset({"kernels", "features"}),
            "Sum": frozenset({"kernels", "hyper"}),
        }
    )


RULES = Rules()


@dataclass(frozen=True)
class Finding:
    """A place that breaks a rule."""

    path: Path
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


def findings(package: Path, rules: Rules = RULES) -> list[Finding]:
    """Return everything that breaks a rule, by file."""
    sources = {path.relative_to(package): path.read_text() for path in sorted(package.rglob("*.py"))}
    trees = {path: ast.parse(source) for path, source in sources.items()}
    found = [*_flat_modules(list(sources), rules), *_repeated_classes(trees, rules)]
    for path, source in sources.items():
        found += [*_long_file(path, source, rules), *_functions(path, trees[path], rules)]
    return sorted(found, key=lambda each: (each.path, each.line))


def _flat_modules(paths: list[Path], rules: Rules) -> Iterator[Finding]:
    flat = [path for path in paths if len(path.parts) == 1 and path.name != "__init__.py"]
    if len(flat) > rules.flat_modules:
        yield Finding(
            flat[-1], 1, f"{len(flat)} modules next to the packages; at most {rules.flat_modules} are allowed"
        )


def _repeated_classes(trees: dict[Path, ast.Module], rules: Rules) -> Iterator[Finding]:
    """Find classes with the same name, including those inside functions and other classes."""
    places: dict[str, list[tuple[Path, int]]] = defaultdict(list)
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].append((path, node.lineno))
    for name, where in places.items():
        rooms = [path.parts[0] for path, _ in where]
        if len(where) > 1 and (len(set(rooms)) < len(rooms) or not rules.shared.get(name, frozenset()) >= set(rooms)):
            first, *others = where
            for path, line in others:
                yield Finding(path, line, f"class {name} has the same name as the one in {first[0]}:{first[1]}")


def _long_file(path: Path, source: str, rules: Rules) -> Iterator[Finding]:
    most = rules.estimator_lines if path.parts[0] == "estimators" else rules.file_lines
    lines = source.count("\n")
    if lines > most:
        yield Finding(path, most + 1, f"the file has {lines} lines; at most {most} are allowed")


def _functions(path: Path, tree: ast.Module, rules: Rules) -> Iterator[Finding]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        lines = body_lines(node)
        if lines > rules.function_lines:
            most = rules.function_lines
            yield Finding(path, node.lineno, f"{node.name} has a body of {lines} lines; at most {most} are allowed")
        takes = node.args
        count = len(takes.posonlyargs) + len(takes.args) + len(takes.kwonlyargs) - 1  # without self
        if node.name == "__init__" and count > rules.constructor_arguments:
            most = rules.constructor_arguments
            yield Finding(path, node.lineno, f"a constructor has {count} arguments; at most {most} are allowed")


def body_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count the lines of a function without its signature and docstring."""
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    return (body[-1].end_lineno or body[-1].lineno) - body[0].lineno + 1 if body else 0


def main(package: Path = PACKAGE) -> int:
    """Print the findings; return 1 if there are any, else 0."""
    found = findings(package)
    for each in found:
        print(each)
    if not found:
        print(f"Layout of {package.name}: class names are unique, all sizes are within bounds.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:2])))
