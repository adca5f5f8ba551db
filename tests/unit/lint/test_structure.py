"""The checks of names, import cycles, sizes and dialect keys: small modules in, findings out."""

from __future__ import annotations

import pytest

from tests.lint import cycles, dialect_keys, names, sizes
from tests.lint.source import Finding, Source


def sources(**modules: str) -> list[Source]:
    """Modules of msauto by name; a double underscore separates package and module."""
    return [Source(f"msauto/{name.replace('__', '/', 1)}.py", text) for name, text in modules.items()]


def lines(findings: list[Finding]) -> list[str]:
    return [str(each) for each in findings]


def test_a_class_name_occurs_once() -> None:
    code = "class A: ...\nclass B:\n    class C: ...\n"
    found = list(names.check([*sources(x=code, y="class _C: ..."), Source("tests/z.py", "class A: ...")]))
    assert lines(found) == [
        "msauto/x.py:3: class name C is also used in msauto/y.py:1",
        "msauto/y.py:1: class name C is also used in msauto/x.py:3",
    ]


def test_a_module_name_that_says_nothing() -> None:
    paths = ["msauto/a/utils.py", "tests/helpers/x.py", "bench/base.py", "msauto/basement.py", "docs/common.md"]
    found = names.check([Source(path, "") for path in paths])
    assert {each.path for each in found} == set(paths[:3])


@pytest.mark.parametrize(
    "back",
    [
        "import msauto.a",
        "from msauto.a import name",
        "from msauto import a",
        "from . import a",
        "from .a import name",
        "if TYPE_CHECKING:\n    import msauto.a",
        "def f():\n    import msauto.a",
    ],
)
def test_an_import_cycle(back: str) -> None:
    (found,) = cycles.check(sources(a="import re\nfrom msauto.p.c import x", p__c="from msauto import b", b=back))
    assert str(found) == "msauto/a.py:2: import cycle: msauto.a → msauto.p.c → msauto.b → msauto.a"


def test_a_package_imports_relative_to_itself() -> None:
    (found,) = cycles.check([Source("msauto/p/__init__.py", "from .a import x"), *sources(p__a="from . import y")])
    assert "msauto.p → msauto.p.a → msauto.p" in found.message


def test_each_cycle_is_found_once() -> None:
    found = list(cycles.check(sources(a="import msauto.b, msauto.c", b="import msauto.a", c="import msauto.a")))
    assert [(each.path, "msauto.c" in each.message) for each in found] == [
        ("msauto/a.py", False),
        ("msauto/c.py", True),
    ]


def test_imports_without_a_cycle() -> None:
    assert not list(cycles.check(sources(a="import msauto.b", b="from msauto.c import d", c="import msauto.gone")))


def test_a_folder_with_many_modules() -> None:
    modules = {f"p__m{number}": "" for number in range(sizes.FOLDER_MODULES)}
    assert not list(sizes.check(sources(p____init__="", **modules)))
    (found,) = sizes.check(sources(**modules, p__one_more=""))
    assert str(found).startswith("msauto/p:1: the folder has 16 modules")


def test_a_long_function() -> None:
    longest = "    pass\n" * (sizes.FUNCTION_LINES - 1)
    found = list(sizes.check(sources(x=f"\nasync def f():\n{longest}    pass\ndef g():\n{longest}")))
    assert [(each.line, each.rule) for each in found] == [(2, "function length")]


DIALECT = "class Dialect:\n    one: int\n    two: int\n    three: int\n    def q(self): return self.three\n"


def test_a_dialect_key_is_read_in_one_module() -> None:
    code = "def f(spec, dialect):\n    return spec.dialect.one, dialect.two, f'{dialect.three}'\n"
    modules = {"interface__dialect": DIALECT, "x": code}
    assert not list(dialect_keys.check(sources(**modules, simulator__x=code)))
    (found,) = dialect_keys.check(sources(**modules, y="dialect.two"))
    assert "dialect key two is read in msauto/x.py, msauto/y.py" in found.message


def test_a_dialect_key_that_no_module_reads() -> None:
    found = list(dialect_keys.check(sources(model__spec=DIALECT)))
    assert [each.message.split(" → ")[0] for each in found] == [
        "dialect key one is read in no module",
        "dialect key two is read in no module",
    ]


def test_the_dialect_was_renamed() -> None:
    with pytest.raises(LookupError, match="class Dialect not found"):
        list(dialect_keys.check(sources(x="class Other: ...")))
