"""Read `hw_classification = …`: every spelling whose value is plain from the source, as Python would take it."""

from __future__ import annotations

import ast
from typing import Optional

from backend_ci.testing.classify.facts import Tag
from backend_ci.testing.classify.names import Names, dotted

TAG = "hw_classification"
ENUM = "HardwareClassification"
_MAX_SHOWN = 80


def tag_of(statement: ast.Assign | ast.AnnAssign, names: Names) -> Optional[Tag]:
    """The tag that a statement of a class body assigns; None when it assigns another name."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    if statement.value is None or not any(isinstance(one, ast.Name) and one.id == TAG for one in targets):
        return None
    return tag_value(statement.value, names)


def tag_value(value: ast.expr, names: Names) -> Tag:
    line = value.lineno
    if isinstance(value, ast.Constant) and value.value is None:
        return Tag("none", "", line)
    member = _member(value, names)
    if member:
        return Tag("member", member, line)
    owner, _, last = names.resolve(dotted(value)).rpartition(".")
    if last == TAG and owner:
        return Tag("of", owner, line)
    return Tag("unreadable", ast.unparse(value)[:_MAX_SHOWN], line)


def contradicts(first: Tag, second: Tag, body: list[ast.stmt]) -> bool:
    """Whether two assignments of a class disagree, and the later one is conditional: which holds is not known."""
    unconditional = {
        one.value.lineno for one in body if isinstance(one, (ast.Assign, ast.AnnAssign)) and one.value
    }
    return second.line not in unconditional and first[:2] != second[:2]


def _member(value: ast.expr, names: Names) -> str:
    """The member of an expression for one: `E.X`, `E["X"]`, `E("x")`, `getattr(E, "X", …)`."""
    if isinstance(value, ast.Subscript) and _is_enum(value.value, names):
        return _text(value.slice)
    if isinstance(value, ast.Call) and len(value.args) == 1 and _is_enum(value.func, names):
        return _text(value.args[0]).upper()
    if isinstance(value, ast.Call) and dotted(value.func) == "getattr" and len(value.args) > 1:
        return _text(value.args[1]) if _is_enum(value.args[0], names) else ""
    if isinstance(value, ast.Attribute) and _is_enum(value.value, names):
        return value.attr
    # A name that stands for a member: `GENERIC = HardwareClassification.GENERIC` above the class.
    parts = names.resolve(dotted(value)).partition("|")[0].split(".")
    return parts[-1] if len(parts) > 1 and parts[-2] == ENUM else ""


def _is_enum(node: ast.expr, names: Names) -> bool:
    return any(name.rpartition(".")[2] == ENUM for name in names.resolve(dotted(node)).split("|"))


def _text(node: ast.AST) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
