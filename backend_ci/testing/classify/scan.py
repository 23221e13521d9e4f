"""Read one test file with `ast`: its classes, their tags and tests, and what instantiates them for devices.

The file is a stranger's: it is parsed, never imported. Where upstream's linter looks (module level, and the bodies
of `if`, `try`, `with`, `for` and `while`), this looks too; classes inside functions and classes are left out.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Optional

from backend_ci.testing.classify.devices import device_uses
from backend_ci.testing.classify.facts import (
    UNREADABLE,
    Call,
    FileFacts,
    Tag,
    Test,
    TestClass,
    unreadable,
)
from backend_ci.testing.classify.names import Names, dotted
from backend_ci.testing.classify.tags import TAG, contradicts, tag_of, tag_value

INSTANTIATE = "instantiate_device_type_tests"
# PyTorch's largest Python test file has 1.4 MB; a parser's memory is a hundred times the source.
MAX_BYTES = 4 * 1024 * 1024
_MAX_SHOWN = 80
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
_DEVICE_PARAMETERS = frozenset({"device", "devices"})


def scan(source: bytes) -> FileFacts:
    """What a file says. Never raises on its content: `problem` says why it could not be read.

    Python 3.9 and 3.10 can end with a segmentation fault on absurdly nested source: callers read in a process
    that may die (worker.py).
    """
    if len(source) > MAX_BYTES:
        return unreadable(f"the file has {len(source):,} bytes; no test file has more than {MAX_BYTES:,}")
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        return unreadable(f"this Python cannot parse it: {error.msg}", error.lineno or 0)
    except ValueError as error:
        return unreadable(f"it is not Python source: {error}")
    except (RecursionError, MemoryError):
        return unreadable("it is nested too deeply to be parsed")
    try:
        return _Scan(source).module(tree)
    except RecursionError:
        return unreadable("it is nested too deeply to be read")


class _Scan:
    def __init__(self, source: bytes) -> None:
        self.source = source
        self.names = Names()
        self.texts: dict[str, tuple[str, ...]] = {}

    def module(self, tree: ast.Module) -> FileFacts:
        statements = list(_scanned(tree.body))
        for statement, _ in statements:
            self._bind(statement)
        classes: list[TestClass] = []
        calls: list[Call] = []
        later: dict[str, Tag] = {}
        for statement, nested in statements:
            if isinstance(statement, ast.ClassDef):
                classes.append(self._class(statement, nested))
            elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                calls.extend(self._calls_inside(statement))
            elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
                calls.extend(self._call(statement.value, nested))
            elif isinstance(statement, ast.For):
                calls.extend(self._loop(statement))
            elif isinstance(statement, ast.Assign):
                later.update(self._tagged_later(statement))
        classes = [one._replace(tag=later[one.name]) if one.name in later else one for one in classes]
        return FileFacts(
            self.names.imports,
            tuple(self.names.stars),
            tuple(classes),
            tuple(calls),
            device_uses(tree, self.source, self.names),
        )

    def _bind(self, statement: ast.stmt) -> None:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            self.names.bind(statement)
        elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target = statement.targets[0]
            if isinstance(target, ast.Name):
                self.names.alias(target.id, dotted(statement.value))
                texts = _texts(statement.value)
                if texts is not None:
                    self.texts[target.id] = texts

    def _class(self, node: ast.ClassDef, nested: bool) -> TestClass:
        tag: Optional[Tag] = None
        tests: dict[str, Test] = {}
        for statement, _ in _scanned(node.body):
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                if statement.name.startswith("test"):
                    tests[statement.name] = self._test(statement)
            elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
                found = tag_of(statement, self.names)
                if found is not None:
                    # Two different values below an `if`: which one holds is not known before it runs.
                    conflict = tag is not None and contradicts(tag, found, node.body)
                    tag = Tag("unreadable", "assigned more than once", found.line) if conflict else found
        return TestClass(
            node.name,
            node.lineno,
            tuple(filter(None, (self.names.resolve(dotted(base)) for base in node.bases))),
            self._decorators(node),
            tag,
            tuple(tests.values()),
            nested,
        )

    def _test(self, node: ast.AST) -> Test:
        assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        arguments = node.args
        names = {one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
        return Test(node.name, node.lineno, not names.isdisjoint(_DEVICE_PARAMETERS), self._decorators(node))

    def _decorators(self, node: ast.AST) -> tuple[str, ...]:
        found = []
        for decorator in getattr(node, "decorator_list", ()):
            name = dotted(decorator.func if isinstance(decorator, ast.Call) else decorator)
            if name:
                found.append(self.names.resolve(name))
        return tuple(found)

    def _tagged_later(self, statement: ast.Assign) -> Iterator[tuple[str, Tag]]:
        """`TestA.hw_classification = …` after the class."""
        for target in statement.targets:
            if (
                isinstance(target, ast.Attribute)
                and target.attr == TAG
                and isinstance(target.value, ast.Name)
            ):
                yield target.value.id, tag_value(statement.value, self.names)

    def _call(self, node: ast.Call, nested: bool, function: str = "", parameter: int = -1) -> Iterator[Call]:
        name = dotted(node.func)
        arguments = tuple(self.names.resolve(dotted(argument)) for argument in node.args)
        # Any call with a name among its arguments may be a wrapper of another file.
        if not name or not (any(arguments) or INSTANTIATE in name):
            return
        name = self.names.resolve(name)
        keywords = {keyword.arg: keyword.value for keyword in node.keywords}
        target = keywords.get("generic_test_class")
        yield Call(
            name,
            self.names.resolve(dotted(target)) if target is not None else (arguments[0] if arguments else ""),
            arguments,
            self._devices(keywords.get("only_for", _argument(node, 3))),
            self._devices(keywords.get("except_for", _argument(node, 2))),
            node.lineno,
            nested,
            function,
            parameter,
        )

    def _calls_inside(self, node: ast.AST) -> Iterator[Call]:
        """Calls in a function that instantiates what it is given: a wrapper."""
        assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        parameters = [one.arg for one in (*node.args.posonlyargs, *node.args.args)]
        if not parameters:
            return
        for statement, _ in _scanned(node.body):
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
                for call in self._call(statement.value, True):
                    if call.target in parameters:
                        yield call._replace(function=node.name, parameter=parameters.index(call.target))

    def _loop(self, node: ast.For) -> Iterator[Call]:
        """`for cls in (TestA, TestB): instantiate_device_type_tests(cls, …)`: once for each class."""
        if not (isinstance(node.target, ast.Name) and isinstance(node.iter, (ast.Tuple, ast.List, ast.Set))):
            return
        classes = [self.names.resolve(dotted(each)) for each in node.iter.elts]
        for statement, _ in _scanned(node.body):
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
                for call in self._call(statement.value, True):
                    if call.target == node.target.id:
                        yield from (call._replace(target=one, arguments=(one,)) for one in classes if one)

    def _devices(self, node: Optional[ast.expr]) -> Optional[tuple[str, ...]]:
        if node is None or (isinstance(node, ast.Constant) and node.value is None):
            return None
        texts = _texts(node)
        if texts is None and isinstance(node, ast.Name):
            texts = self.texts.get(node.id)
        return (UNREADABLE, ast.unparse(node)[:_MAX_SHOWN]) if texts is None else texts


def _scanned(body: list[ast.stmt]) -> Iterator[tuple[ast.stmt, bool]]:
    """Statements of a body, in order, with those below `if`, `try`, `with`, loops and `match`."""
    todo = [(statement, False) for statement in reversed(body)]
    while todo:
        statement, nested = todo.pop()
        yield statement, nested
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        inner: list[ast.stmt] = []
        for block in _BLOCKS:
            for one in getattr(statement, block, ()):
                inner.extend([one] if isinstance(one, ast.stmt) else one.body)
        todo.extend((one, True) for one in reversed(inner))


def _argument(node: ast.Call, position: int) -> Optional[ast.expr]:
    return node.args[position] if len(node.args) > position else None


def _texts(node: ast.expr) -> Optional[tuple[str, ...]]:
    """The strings of a literal string, tuple, list or set of strings; None for anything else."""
    if isinstance(node, ast.Constant):
        return (node.value,) if isinstance(node.value, str) else None
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        texts = [
            one.value for one in node.elts if isinstance(one, ast.Constant) and isinstance(one.value, str)
        ]
        return tuple(texts) if len(texts) == len(node.elts) else None
    return None
