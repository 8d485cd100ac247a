import pytest

from tools import layout
from tools.layout import Rules, findings


@pytest.fixture
def package(tmp_path):
    """Write a package from file names and sources, and return the findings in it."""

    def found(rules=None, **sources):
        for name, source in sources.items():
            path = tmp_path / "pkg" / (name.replace("__", "/") + ".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(source)
        return [str(each) for each in findings(tmp_path / "pkg", rules or Rules())]

    return found


def test_a_plain_package_has_no_findings(package):
    assert package(kernels__a="class One:\n    pass\n", kernels__b="class Two:\n    pass\n") == []


def test_a_class_name_exists_once_also_inside_others(package):
    found = package(kernels__a="class One:\n    pass\n", reports__b="def f():\n    class One:\n        pass\n")
    assert found == ["reports/b.py:2: class One has the same name as the one in kernels/a.py:1"]


def test_public_names_may_be_shared_by_their_namespaces_and_by_no_others(package):
    one = "class Gaussian:\n    pass\n"
    assert package(kernels__a=one, hyper__a=one) == []
    assert package(kernels__a=one, hyper__a=one, kernels__b=one) != []
    assert len(package(kernels__b="", reports__a=one)) == 2  # of three, any but the first


def test_long_files_are_found_and_estimators_are_shorter(package):
    found = package(kernels__a="x = 1\n" * 400, estimators__a="x = 1\n" * 300)
    assert found == []
    found = package(kernels__a="x = 1\n" * 401, estimators__a="x = 1\n" * 301)
    assert found == [
        "estimators/a.py:301: the file has 301 lines; at most 300 are allowed",
        "kernels/a.py:401: the file has 401 lines; at most 400 are allowed",
    ]


def test_long_functions_are_found_and_docstrings_do_not_count(package):
    body = "    x = 1\n"
    words = '    """A.\n' + "\n    B.\n" * 30 + '    """\n'
    assert package(kernels__a="def f():\n" + words + body * 50) == []
    found = package(kernels__a="x = 1\n\nclass A:\n    def f(self):\n" + f"    {body}" * 51)
    assert found == ["kernels/a.py:4: f has a body of 51 lines; at most 50 are allowed"]


def test_constructors_with_many_arguments_are_found_and_other_functions_are_not(package):
    def source(name, count):
        return f"class A:\n    def {name}(self, a0, *, {', '.join(f'a{k}' for k in range(1, count))}):\n        pass\n"

    assert package(kernels__a=source("__init__", 15)) == []
    assert package(kernels__a=source("fit", 16)) == []
    found = package(kernels__a=source("__init__", 16))
    assert found == ["kernels/a.py:2: a constructor has 16 arguments; at most 15 are allowed"]


def test_modules_beside_the_packages_are_counted(package):
    assert package(a="", b="", c="", d="", kernels__e="") == []
    assert package(e="") == ["e.py:1: 5 modules next to the packages; at most 4 are allowed"]


def test_findings_are_printed_and_are_a_failure(tmp_path, capsys):
    (tmp_path / "a.py").write_text("x = 1\n")
    assert layout.main(tmp_path) == 0
    assert capsys.readouterr().out.startswith("Layout of")
    (tmp_path / "a.py").write_text("x = 1\n" * 401)
    assert layout.main(tmp_path) == 1
    assert capsys.readouterr().out == "a.py:401: the file has 401 lines; at most 400 are allowed\n"


def test_this_package_keeps_to_the_rules():
    assert (layout.PACKAGE / "__init__.py").is_file()
    assert [str(each) for each in findings(layout.PACKAGE)] == []
