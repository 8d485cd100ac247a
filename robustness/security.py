"""Untrusted files: model files, tables and names that were made to do harm."""

import gzip
import json
import re
import stat
import tempfile
import warnings
import zipfile
from pathlib import Path
from unittest.mock import patch

import markupsafe
import numpy as np
import pandas as pd

import kernelwright as kw
from kernelwright.cli import run
from kernelwright.persistence.classes import listed_class, saved_class
from robustness.faults import Row, Tally, blobs, python
from tests.persistence import forging
from tools.processes import peak_of

BOMB = 2**28  # bytes that a small file unpacks to


def figures(*, quick: bool) -> list[Row]:
    """Make a row for each way in."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        place = Path(folder)
        return [
            _forged_models(place),
            _archives(place),
            _damaged_models(place, 200 if quick else 5000),
            _classes(),
            _packed_tables(place),
            _formulas(place),
            _pages(),
            _no_dangerous_calls(),
        ]


def _is_refused(path: Path) -> tuple[bool, object]:
    try:
        return False, kw.load(path)
    except kw.ModelFileError as error:
        return True, error
    except Exception as error:
        return False, error


def _forged_models(folder: Path) -> Row:
    """Try valid digests with forged content: classes, dtypes, shapes, references, state in place of methods."""
    tally = Tally("forged model files are refused")
    for table, _, arrays in forging.FORGERIES.values():
        forging.forge(folder / "model.kw", table, *arrays)
        tally.check(*_is_refused(folder / "model.kw"))
    return tally.row()


def _archives(folder: Path) -> Row:
    """Try zip bombs, names that lead elsewhere, links, repeated members and too many of them."""
    tally = Tally("tricks with archives are refused, in little memory")
    path = folder / "archive.kw"
    kw.save(kw.kernels.Gaussian(1.0), path)
    parts = forging.parts_of(path)

    def attempt(changed: object, compression: int = zipfile.ZIP_STORED) -> None:
        forging.write_parts(path, changed, compression)
        found: list[object] = []
        taken = peak_of(lambda: found.extend(_is_refused(path)))
        tally.check(bool(found[0]) and taken < 2**28, f"{found[1]}, {taken} bytes")

    for name in ("../x", "/etc/x", "arrays/../x", "C:\\x", "arrays/00", "arrays/-1", "arrays/0\0", "a" * 60_000):
        attempt(parts | {name: b"x"})
    attempt([*parts.items(), ("document.json", b"{}")])
    for packing in (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        attempt(parts | {"arrays/0": bytes(BOMB)}, packing)
    attempt(parts | {f"arrays/{number}": b"" for number in range(100_000)})
    link = zipfile.ZipInfo("arrays/0")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    attempt([*((name, part) for name, part in parts.items() if name != "arrays/0"), (link, b"/etc/passwd")])
    attempt(parts | {"document.json": b"[" * 10**6})
    attempt(parts | {"document.json": json.dumps({"root": 1, "table": [[]] * 10**5}).encode()})
    for many in (b"[]", b"{}", b"1"):
        attempt(parts | {"document.json": b'{"root": 1, "table": [1' + (b"," + many) * 2**24 + b"]}"})
    attempt({"manifest.json": parts["manifest.json"]})
    return tally.row()


def _damaged_models(folder: Path, n: int) -> Row:
    """Change, cut and swap bytes at random: the file is refused, or gives the same model."""
    tally = Tally("damaged model files are refused or the same model")
    X, y = blobs(30)
    first, second = folder / "first.kw", folder / "second.kw"
    kw.save(kw.EmbeddingClassifier(kw.kernels.Gaussian(1.0), learn=None).fit(X, y), first)
    kw.save(kw.KreinSVC(kw.kernels.Gaussian(1.0)).fit(X, y), second)
    expected, random = kw.load(first).predict_proba(X), np.random.default_rng(0)
    contents = first.read_bytes(), second.read_bytes()
    for _ in range(n):
        first.write_bytes(forging.mutated(*contents, random))
        refused, found = _is_refused(first)
        good = refused or (
            isinstance(found, kw.EmbeddingClassifier) and np.array_equal(found.predict_proba(X), expected)
        )
        tally.check(good, repr(found))
    return tally.row()


def _classes() -> Row:
    """Ask for classes and functions that may not be restored."""
    tally = Tally("classes that run code cannot be named")
    dangerous = "os.system builtins.eval builtins.exec subprocess.Popen pickle.Unpickler torch.load numpy.load"
    dangerous += " sklearn.preprocessing._function_transformer.FunctionTransformer kernelwright.cli.main joblib.Memory"
    for name in dangerous.split():
        tally.check(listed_class(name) is None and saved_class(name) is None, name)
    return tally.row()


def _packed_tables(folder: Path) -> Row:
    """Check that a small file which unpacks to more than the free memory is refused early."""
    tally = Tally("compressed tables that unpack to too much are refused")
    line = b"1,2,a\n" * (BOMB // 6)
    (folder / "bomb.csv.gz").write_bytes(gzip.compress(b"x,z,y\n" + line, 1))
    with zipfile.ZipFile(folder / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("bomb.csv", b"x,z,y\n" + line)
    del line
    for name in ("bomb.csv.gz", "bomb.zip"):
        arguments = ["fit", str(folder / name), "-t", "y", "-o", str(folder / "m.kw")]
        statuses: list[int] = []

        def fit(arguments: list[str] = arguments, statuses: list[int] = statuses) -> None:
            statuses.append(run(arguments))

        with patch("kernelwright.numerics.memory.free_memory", lambda: 2.0**28):
            taken = peak_of(fit)
        tally.check(statuses == [2] and taken < 2**28, f"{statuses}, {taken} bytes")
    return tally.row()


NASTY = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", '=HYPERLINK("http://x")', "＝1+1"]


def _formulas(folder: Path) -> Row:
    """Check that no cell of the predictions is a formula to a spreadsheet, and that numbers are unchanged."""
    tally = Tally("formulas in answers are neutralised on request")
    X, y = blobs(80)
    frame = pd.DataFrame(X.round(3), columns=list("abcdef")).assign(y=np.array(["=x()", "+y", "plain"])[y])
    frame.insert(0, "=id()", [f"{NASTY[k % len(NASTY)]} {k}" for k in range(80)])
    frame.to_csv(folder / "t.csv", index=False)
    model, out = str(folder / "m.kw"), folder / "out.csv"
    assert run(["fit", str(folder / "t.csv"), "-t", "y", "--no-cv", "--id", "=id()", "--json", "-o", model]) == 0
    predict = ["predict", model, str(folder / "t.csv"), "--keep-columns", "--safe-for-spreadsheets", "-o", str(out)]
    assert run(predict) == 0
    found = pd.read_csv(out, dtype=str, keep_default_na=False)
    for cell in [*found.columns, *found.to_numpy().ravel()]:
        number = re.fullmatch(r"[+-]?[0-9.]+(e-?[0-9]+)?", cell) is not None
        tally.check(number or not cell.startswith(tuple("=+-@\t\r＝")), cell)
    tally.check(found["a"].astype(float).tolist() == frame["a"].tolist(), "numbers were changed")
    return tally.row()


def _pages() -> Row:
    """Check that names of columns and classes are plain text on a page."""
    from kernelwright import reports, tables

    tally = Tally("names on a report page are text")
    X, y = blobs(90)
    for nasty in (
        "<script>alert(1)</script>",
        '"><img src=x onerror=alert(1)>',
        "'; alert(1); '",
        "{{ 7*7 }}",
        "&lt;b&gt;",
    ):
        frame = pd.DataFrame(X, columns=[nasty, *"bcdef"]).assign(target=np.array([nasty, "b", "c"])[y])
        table = tables.as_table(frame)
        page = reports.model_report(tables.TabularModel.fit(tables.TrainingTable.of(table, "target")))
        alone = re.sub(r"(?s)<style.*?</style>", "", page)
        as_text = str(markupsafe.escape(nasty)) in alone  # also "{{ 7*7 }}", and not its value
        tally.check(as_text and "<script>alert" not in alone and "<img src=x" not in alone, nasty)
    return tally.row()


def _no_dangerous_calls() -> Row:
    """Search the source for pickle, eval and shells; reports may copy their own figures by pickle, in memory."""
    tally = Tally("the source neither unpickles nor evaluates")
    code = r"""
import ast, pathlib, kernelwright
found = []
for path in pathlib.Path(kernelwright.__file__).parent.rglob("*.py"):
    if path.parts[-2:] == ("reports", "page.py"):
        continue
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [a.name for a in node.names] + [getattr(node, "module", None) or ""]
            found += [(path.name, n) for n in names if n.split(".")[0] in ("pickle", "shelve", "marshal", "subprocess")]
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(called, ast.Name) and called.id in ("eval", "exec", "compile"):
            found.append((path.name, called.id))
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle" and getattr(node.value, "value", 1):
            found.append((path.name, "allow_pickle"))
        if isinstance(node, ast.keyword) and node.arg == "weights_only" and not getattr(node.value, "value", 0):
            found.append((path.name, "weights_only"))
print(found)
"""
    said = python(code).stdout.strip()
    tally.check(said == "[]", said)
    return tally.row()
