"""Find the places of a module that name an accelerator. Quick: statements without such a word are not entered."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from typing import Any, Optional

from backend_ci.testing.classify.facts import DeviceUse
from backend_ci.testing.classify.names import Names, dotted

UPSTREAM = ("cuda", "xpu", "mps", "hpu", "mtia", "xla", "ipu", "privateuse1")
# Backends outside of PyTorch. Their own tests may name them; for a proposal they speak as loud as the others.
BACKENDS = ("npu", "spyre", "rbln")
ACCELERATORS = UPSTREAM + BACKENDS
# `torch.<module>` of an accelerator; `accelerator` stands for whichever is there.
_MODULES = frozenset(ACCELERATORS) | {"accelerator"}
# Searched one by one: `bytes.find` is ten times as fast as one pattern with alternatives.
_WORDS = (
    b"cuda", b"CUDA", b"xpu", b"XPU", b"hpu", b"HPU", b"mtia", b"MTIA", b"rivateuse1", b"PRIVATEUSE1", b"mps",
    b"MPS", b"xla", b"ipu", b"is_available", b"GPU", b".npu", b'"npu', b"'npu", b"spyre", b"rbln", b"gpu",
)  # fmt: skip
_DEVICE_TEXT = re.compile(rf"({'|'.join(ACCELERATORS)})(:\d+)?")
_FLAG = re.compile(r"(?:TEST|HAS|RUN|requires)_?\w*?(CUDA|XPU|MPS|HPU|cuda|xpu|mps|hpu)(?![a-z])\w*")
# Names of PyTorch's test helpers that ask for an accelerator.
_FLAGS = {
    **dict.fromkeys(
        ("GPU_TYPE", "requires_gpu", "requires_gpu_and_triton", "HAS_GPU", "HAS_GPU_AND_TRITON", "TEST_MULTIGPU",
         "skip_if_lt_x_gpu", "skip_if_no_gpu", "skip_if_not_multigpu", "at_least_x_gpu"), "accelerator"),
    **dict.fromkeys(("requires_nccl", "skip_if_no_nccl", "skip_but_pass_in_sandcastle_if_no_nccl"), "cuda"),
}  # fmt: skip
# A text that ends in a device: `worker1/cuda:0`. Evidence for a proposal, no finding.
_TEXT = re.compile(rf"(?:.*[/ ])?({'|'.join(ACCELERATORS)})(:\d+)?", re.DOTALL)
_DEVICE_KEYWORDS = frozenset({"device", "devices", "device_type", "map_location", "use_device"})
# Functions whose first argument is a device, by the end of their name.
_DEVICE_FUNCTIONS = frozenset(
    {
        "torch.device", "torch.set_default_device", "torch.autocast", "torch.amp.autocast", "torch.amp.GradScaler",
        "torch.Generator", "torch.get_device_module",
    }
)  # fmt: skip
_DECORATED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_COMPOUND = (
    *_DECORATED, ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.ExceptHandler,
    *(getattr(ast, name) for name in ("Match", "match_case", "TryStar") if hasattr(ast, name)),
)  # fmt: skip
_MOVES = frozenset({"cuda", "xpu", "hpu", "mtia", "ipu", *BACKENDS})
_DEVICE_VARIABLES = frozenset({"device", "devices", "device_type", "DEVICE", "DEVICE_TYPE"})


def device_uses(tree: ast.Module, source: bytes, names: Names) -> tuple[DeviceUse, ...]:
    """Every use in the order of the source."""
    if b"\r" in source:  # each of the three is one line's end to the parser
        source = source.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    lines = _lines_with_words(source, names.bound_to((*ACCELERATORS, "is_available")))
    if not lines:
        return ()
    following = _following(lines, source.count(b"\n") + 2)
    found: list[DeviceUse] = []
    for part, owner, method in _parts(tree.body, following):
        found.extend(_of_expression(part, owner, method, names, following))
    found.sort(key=lambda use: (use.line, use.column))
    return tuple(found)


def device_in(text: object) -> str:
    """The accelerator that a device string names (`cuda:0` → `cuda`); empty for any other value."""
    match = _DEVICE_TEXT.fullmatch(text) if isinstance(text, str) else None
    return match[1] if match else ""


def _lines_with_words(source: bytes, aliases: Iterable[str]) -> list[int]:
    positions: list[int] = []
    for word in (*_WORDS, *(alias.encode() for alias in aliases)):
        at = source.find(word)
        while at >= 0:
            positions.append(at)
            at = source.find(word, at + 1)
    positions.sort()
    lines: list[int] = []
    before, line = 0, 1
    for at in positions:
        line += source.count(b"\n", before, at)
        before = at
        if not lines or lines[-1] != line:
            lines.append(line)
    return lines


def _following(lines: list[int], count: int) -> list[int]:
    """For each line number the first line at or after it that holds a word: one look-up prunes a sub-tree."""
    following: list[int] = []
    for line in lines:
        following.extend([line] * (line + 1 - len(following)))
    none = 1 << 60
    following.extend([none] * (count + 1 - len(following)))
    return following


def _children(node: ast.AST, following: list[int]) -> Iterator[ast.AST]:
    """The parts of a node that span a line with a word."""
    for field in node._fields:
        value = getattr(node, field, None)
        for part in value if isinstance(value, list) else (value,):
            if isinstance(part, ast.AST) and _holds(part, following):
                yield part


def _holds(node: Any, following: list[int]) -> bool:
    try:
        first, last = node.lineno, node.end_lineno
        if isinstance(node, _DECORATED) and node.decorator_list:
            first = node.decorator_list[0].lineno
        return bool(following[first] <= last)
    except (AttributeError, IndexError, TypeError):  # a `case` or `arguments` has no place of its own
        return True


def _parts(body: list[ast.stmt], following: list[int]) -> Iterator[tuple[ast.AST, str, str]]:
    """The statements and headers that hold such a word, with the class and function around them."""
    todo: list[tuple[ast.AST, str, str]] = [(node, "", "") for node in body if _holds(node, following)]
    while todo:
        node, owner, method = todo.pop()
        if isinstance(node, ast.ClassDef) and not owner:
            owner = node.name
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and not method:
            method = node.name
        elif not isinstance(node, _COMPOUND):
            yield node, owner, method
            continue
        for part in _children(node, following):
            if isinstance(part, (ast.stmt, *_COMPOUND)):
                todo.append((part, owner, method))
            else:
                yield part, owner, method


def _of_expression(
    root: ast.AST, owner: str, method: str, names: Names, following: list[int]
) -> Iterator[DeviceUse]:
    todo = [root]
    while todo:
        node = todo.pop()
        use: Optional[tuple[str, str, str]] = None
        enter = True
        if isinstance(node, (ast.Attribute, ast.Name)):
            use, enter = _of_name(node, names), isinstance(node, ast.Attribute)
            enter = enter and use is None
        elif isinstance(node, ast.Call):
            use = _of_call(node, names)
        elif isinstance(node, ast.keyword):
            device = device_in(getattr(node.value, "value", None))
            if node.arg in _DEVICE_KEYWORDS and device:
                use = ("keyword", device, f'{node.arg}="{getattr(node.value, "value", "")}"')
            elif node.arg == "use_cuda" and getattr(node.value, "value", None) is True:
                use = ("keyword", "cuda", "use_cuda=True")
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            device = device_in(getattr(node.value, "value", None))
            if device and any(isinstance(one, ast.Name) and one.id in _DEVICE_VARIABLES for one in targets):
                use = ("value", device, f'"{getattr(node.value, "value", "")}"')
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            match = _TEXT.fullmatch(node.value) if len(node.value) < 200 else None
            use = ("text", match[1], node.value) if match else None
        elif isinstance(node, ast.arguments):
            for default, device in _defaults(node):
                text = f'"{getattr(default, "value", "")}"'
                yield DeviceUse("value", device, text, default.lineno, default.col_offset + 1, owner, method)
        if use is not None:
            yield DeviceUse(*use, node.lineno, node.col_offset + 1, owner, method)  # type: ignore[attr-defined]
            if use[0] == "availability":  # the name of the function is told already
                todo.extend([*node.args, *node.keywords])  # type: ignore[attr-defined]
                continue
        if enter:
            todo.extend(_children(node, following))


def _defaults(node: ast.arguments) -> Iterator[tuple[ast.expr, str]]:
    """The defaults of device parameters that name an accelerator."""
    plain = [*node.posonlyargs, *node.args]
    pairs = list(zip(plain[len(plain) - len(node.defaults) :], node.defaults))
    pairs += [
        (name, default) for name, default in zip(node.kwonlyargs, node.kw_defaults) if default is not None
    ]
    for name, default in pairs:
        device = device_in(getattr(default, "value", None))
        if device and name.arg in _DEVICE_VARIABLES:
            yield default, device


def _of_call(node: ast.Call, names: Names) -> Optional[tuple[str, str, str]]:
    function = node.func
    name = names.resolve(dotted(function)).partition("|")[0]
    parts = name.split(".")
    if parts[0] == "torch" and parts[-1] == "is_available" and _MODULES.intersection(parts[1:-1]):
        device = next(part for part in parts if part in _MODULES)
        return "availability", device, name
    first = device_in(getattr(node.args[0], "value", None)) if node.args else ""
    if first and (
        name in _DEVICE_FUNCTIONS or (isinstance(function, ast.Attribute) and function.attr == "to")
    ):
        shown = name if name in _DEVICE_FUNCTIONS else ".to"
        return "argument", first, f'{shown}("{getattr(node.args[0], "value", "")}")'
    if isinstance(function, ast.Attribute) and function.attr in _MOVES and dotted(function.value) != "torch":
        return "method", function.attr, f".{function.attr}()"
    return None


def _of_name(node: ast.AST, names: Names) -> Optional[tuple[str, str, str]]:
    name = names.resolve(dotted(node)).partition("|")[0]
    if not name:
        return None
    parts = name.split(".")
    if len(parts) > 2 and parts[0] == "torch" and parts[1] in ACCELERATORS:
        return "module", parts[1], name
    if len(parts) > 1 and parts[-2] == "ProfilerActivity" and parts[-1].lower() in ACCELERATORS:
        return "activity", parts[-1].lower(), f"ProfilerActivity.{parts[-1]}"
    match = _FLAG.fullmatch(parts[-1])
    if match:
        return "flag", match[1].lower(), parts[-1]
    device = _FLAGS.get(parts[-1])
    return ("flag", device, parts[-1]) if device else None
