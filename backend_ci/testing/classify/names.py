"""Names in one module: what a dotted name means once the module's own imports are followed."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Optional

_MAX_ALTERNATIVES = 4


def dotted(node: Optional[ast.AST]) -> str:
    """`a.b.c` of a name or attribute chain; empty for any other expression."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    parts.append(node.id)
    parts.reverse()
    return ".".join(parts)


class Names:
    """The names that a module binds by import or by a plain alias, and what they stand for."""

    def __init__(self) -> None:
        self.imports: dict[str, str] = {}
        self.stars: list[str] = []

    def bind(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                # `import a.b` binds `a`; `import a.b as c` binds `c` to `a.b`.
                name = alias.asname or alias.name.partition(".")[0]
                self._add(name, alias.name if alias.asname else name)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            for alias in node.names:
                if alias.name == "*":
                    self.stars.append(module)
                else:
                    joint = "" if module.endswith(".") else "."
                    self._add(alias.asname or alias.name, f"{module}{joint}{alias.name}")

    def alias(self, name: str, value: str) -> None:
        """`name = value`, where the value is a dotted name."""
        if value and name != value:
            self._add(name, self.resolve(value))

    def resolve(self, name: str) -> str:
        """What a dotted name stands for; alternatives joined by `|`. A local name stays as it is."""
        head, _, rest = name.partition(".")
        meaning = self.imports.get(head)
        if meaning is None:
            return name
        if not rest:
            return meaning
        if "|" not in meaning:
            return f"{meaning}.{rest}"
        return "|".join(f"{one}.{rest}" for one in meaning.split("|"))

    def bound_to(self, words: Iterable[str]) -> list[str]:
        """Names that hide one of these words: `import torch.cuda as c`."""
        wanted = tuple(words)
        return [
            name
            for name, meaning in self.imports.items()
            if any(word in meaning for word in wanted) and not any(word in name for word in wanted)
        ]

    def _add(self, name: str, meaning: str) -> None:
        known = self.imports.get(name)
        if known is None:
            self.imports[name] = meaning
            return
        each = known.split("|")
        new = [one for one in meaning.split("|") if one not in each]
        self.imports[name] = "|".join((each + new)[:_MAX_ALTERNATIVES])
