"""The files of a tree together: which class a name means, what a class inherits, who instantiates it.

Files that are only needed for that (a base class in a helper module, PyTorch's own `torch/testing`) are found the
way the tests find them, by the folder of the importing file and the folders above it, up to the repository's root.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Optional

from backend_ci.testing.classify.facts import Call, FileFacts, TestClass
from backend_ci.testing.classify.scan import INSTANTIATE

Read = Callable[[Sequence[Path]], Mapping[Path, FileFacts]]
_MAX_HOPS = 8  # of re-exports
_MAX_ROUNDS = 6  # of files that are only needed for others
_MAX_FOLDERS = 32
_MAX_DEPTH = 100  # of inheritance


class Key(NamedTuple):
    """A class of the tree: its file, and its place among the file's classes."""

    file: Path
    place: int


class Instantiation(NamedTuple):
    """A call that makes device variants of a class."""

    file: Path
    call: Call


class Tree:
    """All files that matter, linked. `files` are the ones asked for; `others` may say something about them."""

    def __init__(self, files: Sequence[Path], read: Read, others: Iterable[Path] = ()) -> None:
        self.files = tuple(files)
        self._modules: dict[tuple[Path, str], Optional[Path]] = {}
        self._roots: dict[Path, Path] = {}
        self._orders: dict[Key, tuple[list[Key], list[str]]] = {}
        wanted = {*self.files, *others}
        self.facts: dict[Path, FileFacts] = dict(read(sorted(wanted)))
        for _ in range(_MAX_ROUNDS):
            wanted = self._needed(wanted) - self.facts.keys()
            if not wanted:
                break
            self.facts.update(read(sorted(wanted)))
        self._by_name = {file: _by_name(facts) for file, facts in self.facts.items()}
        self.instantiations: dict[Key, list[Instantiation]] = {}
        # Files in which something that is not a class by name is instantiated, with the line.
        self.dynamic: dict[Path, int] = {}
        self._find_instantiations()

    def cls(self, key: Key) -> TestClass:
        return self.facts[key.file].classes[key.place]

    def find(self, file: Path, names: str, before: Optional[int] = None) -> Optional[Key]:
        """The class that a name means in a file. `before`: as a base of the class at that place."""
        for name in names.split("|"):
            key = self._find(file, name, before, _MAX_HOPS)
            if key is not None:
                return key
        return None

    def order(self, key: Key, depth: int = 0) -> tuple[list[Key], list[str]]:
        """The classes in the order Python looks through them (C3), and the bases that are not in the tree."""
        known = self._orders.get(key)
        if known is None and depth > _MAX_DEPTH:
            return [key], list(self.cls(key).bases)
        if known is None:
            self._orders[key] = known = ([key], [])  # a class that is its own base ends here
            bases: list[Key] = []
            unknown: list[str] = []
            for name in self.cls(key).bases:
                base = self.find(key.file, name, key.place)
                if base is None or base == key:
                    unknown.append(name)
                elif base not in bases:
                    bases.append(base)
            orders = [self.order(base, depth + 1) for base in bases]
            for _, others in orders:
                unknown.extend(other for other in others if other not in unknown)
            merged = _merge([list(order) for order, _ in orders] + [bases])
            self._orders[key] = known = ([key, *(one for one in merged if one != key)], unknown)
        return known

    def _find(self, file: Path, name: str, before: Optional[int], hops: int) -> Optional[Key]:
        facts = self.facts.get(file)
        if facts is None or hops == 0 or not name:
            return None
        places = self._by_name[file].get(name)
        if places:
            earlier = [place for place in places if before is None or place < before]
            if earlier or before not in places:
                return Key(file, (earlier or places)[-1])
        head, _, rest = name.partition(".")
        bound = facts.imports.get(head)
        if bound is not None and bound != head:
            for each in bound.split("|"):
                key = self._find_imported(file, f"{each}.{rest}" if rest else each, hops)
                if key is not None:
                    return key
        key = self._find_imported(file, name, hops)
        if key is None and "." not in name:
            for module in facts.stars:
                target = self._module(file, module)
                key = self._find(target, name, None, hops - 1) if target else None
                if key is not None:
                    break
        return key

    def _find_imported(self, file: Path, name: str, hops: int) -> Optional[Key]:
        """A name with its module written out: the module may be any prefix of it."""
        module, _, rest = name.rpartition(".")
        while module.strip("."):
            target = self._module(file, module)
            if target is not None:
                return self._find(target, rest, None, hops - 1)
            module, _, last = module.rpartition(".")
            rest = f"{last}.{rest}"
        plain = name.lstrip(".")
        if plain != name:  # from . import name
            target = self._module(file, name[: len(name) - len(plain)])
            return self._find(target, plain, None, hops - 1) if target else None
        return None

    def _module(self, file: Path, name: str) -> Optional[Path]:
        """The file of a module as the importing file would find it; None when it is not in the tree."""
        place = (file.parent, name)
        if place not in self._modules:
            self._modules[place] = self._search(file, name)
        return self._modules[place]

    def _search(self, file: Path, name: str) -> Optional[Path]:
        plain = name.lstrip(".")
        level = len(name) - len(plain)
        parts = plain.split(".") if plain else []
        if level:
            above = file.parents
            return self._file(above[level - 1], parts) if level <= len(above) else None
        for folder in self._folders(file):
            found = self._file(folder, parts)
            if found is not None and found != file:
                return found
        return None

    def _file(self, folder: Path, parts: Sequence[str]) -> Optional[Path]:
        place = folder.joinpath(*parts)
        candidates = [place / "__init__.py"]
        if parts:
            candidates.insert(0, place.with_name(place.name + ".py"))
        for candidate in candidates:
            if candidate in self.facts or candidate.is_file():
                return candidate
        return None

    def _folders(self, file: Path) -> Iterable[Path]:
        root = self._root(file.parent)
        for folder in list(file.parents)[:_MAX_FOLDERS]:
            yield folder
            if folder == root:
                return

    def _root(self, folder: Path) -> Path:
        """The repository's root; without one the folder itself, so that no stranger's folder is read."""
        if folder not in self._roots:
            self._roots[folder] = repository_root(folder) or folder
        return self._roots[folder]

    def _needed(self, files: Iterable[Path]) -> set[Path]:
        """The modules that base classes, tags and instantiations of these files come from."""
        needed: set[Path] = set()
        for file in files:
            facts = self.facts[file]
            names: set[str] = set()
            for cls in facts.classes:
                names.update(cls.bases)
                if cls.tag is not None and cls.tag.kind == "of":
                    names.add(cls.tag.value)
            for call in facts.calls:
                if call.name != INSTANTIATE and not call.name.endswith("." + INSTANTIATE):
                    names.update([call.name] if "instantiate" in call.name else [])
                names.add(call.target)
            names.update(facts.imports[name] for name in list(names) if name in facts.imports)
            for name in {one for many in names for one in many.split("|")}:
                module = name.rpartition(".")[0]
                while module.strip("."):
                    found = self._module(file, module)
                    if found is not None:
                        needed.add(found)
                        break
                    module = module.rpartition(".")[0]
            if facts.classes:
                needed.update(filter(None, (self._module(file, module) for module in facts.stars)))
        return needed

    def _find_instantiations(self) -> None:
        for file, facts in self.facts.items():
            for call in facts.calls:
                if call.parameter >= 0:
                    continue
                if is_instantiation(call.name):
                    self._instantiated(file, call.target, call)
                    continue
                for wrapper in self._wrappers(file, call.name):
                    if wrapper.parameter < len(call.arguments):
                        own = wrapper._replace(line=call.line, nested=call.nested)
                        self._instantiated(file, call.arguments[wrapper.parameter], own)

    def _instantiated(self, file: Path, target: str, call: Call) -> None:
        key = self.find(file, target) if target else None
        if key is not None:
            self.instantiations.setdefault(key, []).append(Instantiation(file, call))
        elif not target or (target not in self.facts[file].imports and "." not in target):
            self.dynamic.setdefault(file, call.line)

    def _wrappers(self, file: Path, names: str) -> list[Call]:
        """The instantiating calls inside the function that a name means."""
        for name in names.split("|"):
            module, _, function = name.rpartition(".")
            place = self._module(file, module) if module else file
            calls = self.facts[place].calls if place in self.facts else ()
            found = [call for call in calls if call.function == function and is_instantiation(call.name)]
            if found:
                return found
        return []


def repository_root(folder: Path) -> Optional[Path]:
    return next((one for one in (folder, *folder.parents) if (one / ".git").exists()), None)


def is_instantiation(names: str) -> bool:
    return any(name.rpartition(".")[2] == INSTANTIATE for name in names.split("|"))


def _by_name(facts: FileFacts) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for index, cls in enumerate(facts.classes):
        found.setdefault(cls.name, []).append(index)
    return found


def _merge(orders: list[list[Key]]) -> list[Key]:
    """C3. Where Python would refuse the bases (they contradict each other), the first comes first."""
    merged: list[Key] = []
    while orders := [order for order in orders if order]:
        for order in orders:
            if not any(order[0] in other[1:] for other in orders):
                break
        else:
            order = orders[0]
        head = order[0]
        merged.append(head)
        orders = [[one for one in other if one != head] for other in orders]
    return merged
