"""The files of a tree together: which class a name means, what a class inherits, who instantiates it.

Files that are only needed for that (a base class in a helper module, PyTorch's own `torch/testing`) are found the
way the tests find them, by the folder of the importing file and the folders above it, up to the repository's root.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Optional

from backend_ci.testing.classify.facts import Call, DeviceUse, FileFacts, TestClass
from backend_ci.testing.classify.scan import INSTANTIATE

Read = Callable[[Sequence[str]], Mapping[str, FileFacts]]
_MAX_HOPS = 8  # of re-exports
_MAX_ROUNDS = 6  # of files that are only needed for others
_MAX_FOLDERS = 32
_MAX_DEPTH = 100  # of inheritance


class Key(NamedTuple):
    """A class of the tree: its file, and its place among the file's classes."""

    file: str
    place: int


class Instantiation(NamedTuple):
    """A call that makes device variants of a class."""

    file: str
    call: Call


class Tree:
    """All files that matter, linked. `files` are the ones asked for; `others` may say something about them."""

    def __init__(self, files: Sequence[str], read: Read, others: Iterable[str] = ()) -> None:
        self.files = tuple(files)
        self._modules: dict[tuple[str, str], Optional[str]] = {}
        self._places: dict[str, Optional[str]] = {}
        self._roots: dict[str, str] = {}
        self._uses: dict[str, dict[str, list[DeviceUse]]] = {}
        self._imported: dict[tuple[str, str], Optional[Key]] = {}
        self._orders: dict[Key, tuple[list[Key], list[str]]] = {}
        self._missing: set[str] = set()
        self.facts: dict[str, FileFacts] = {}
        self.instantiations: dict[Key, list[Instantiation]] = {}
        # Files in which something that is not a class by name is instantiated, with the line.
        self.dynamic: dict[str, int] = {}
        wanted = {*self.files, *others}
        for _ in range(_MAX_ROUNDS):
            self.facts.update(read(sorted(wanted)))
            self._link()
            wanted = self._missing - self.facts.keys()
            if not wanted:
                break

    def _link(self) -> None:
        """Resolve everything with the files at hand; the ones that it lacked are then in `_missing`."""
        for forgotten in (self._imported, self._orders, self.instantiations, self.dynamic):
            forgotten.clear()
        self._missing.clear()
        self._by_name = {file: _by_name(facts) for file, facts in self.facts.items()}
        self._find_instantiations()
        for file in self.files:
            for place in range(len(self.facts[file].classes)):
                for key in self.order(Key(file, place))[0]:
                    tag = self.cls(key).tag
                    if tag is not None and tag.kind == "of":
                        self.find(key.file, tag.value, key.place)

    def cls(self, key: Key) -> TestClass:
        return self.facts[key.file].classes[key.place]

    def uses_of(self, key: Key) -> Sequence[DeviceUse]:
        """Where the class names an accelerator."""
        owners = self._uses.get(key.file)
        if owners is None:
            self._uses[key.file] = owners = {}
            for use in self.facts[key.file].uses:
                owners.setdefault(use.owner, []).append(use)
        return owners.get(self.cls(key).name, ())

    def find(self, file: str, names: str, before: Optional[int] = None) -> Optional[Key]:
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
            for name in self.cls(key).bases[:_MAX_DEPTH]:
                base = self.find(key.file, name, key.place)
                if base is None or base == key:
                    unknown.append(name)
                elif base not in bases:
                    bases.append(base)
            orders = [self.order(base, depth + 1) for base in bases]
            for _, others in orders:
                unknown.extend(other for other in others if other not in unknown)
            # Longer chains than anybody writes are cut, so that a made-up one costs no minutes.
            merged = _merge([order[:_MAX_DEPTH] for order, _ in orders] + [bases])[:_MAX_DEPTH]
            self._orders[key] = known = ([key, *(one for one in merged if one != key)], unknown)
        return known

    def _find(self, file: str, name: str, before: Optional[int], hops: int) -> Optional[Key]:
        facts = self.facts.get(file)
        if facts is None:
            self._missing.add(file)
        if facts is None or hops == 0 or not name:
            return None
        places = self._by_name[file].get(name)
        if places:
            # Of several classes of that name: the one above the class whose base it is, else the last.
            earlier = len(places) if before is None else bisect_left(places, before)
            if earlier or places != [before]:
                return Key(file, places[earlier - 1])
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

    def _find_imported(self, file: str, name: str, hops: int) -> Optional[Key]:
        """A name with its module written out. Files of one folder mean the same by it."""
        place = (file[: file.rfind(os.sep)], name)
        if place not in self._imported:
            self._imported[place] = None  # an import in a circle ends here
            self._imported[place] = self._search_imported(file, name, hops)
        return self._imported[place]

    def _search_imported(self, file: str, name: str, hops: int) -> Optional[Key]:
        """The module may be any prefix of the name."""
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

    def _module(self, file: str, name: str) -> Optional[str]:
        """The file of a module as the importing file would find it; None when it is not in the tree."""
        place = (file[: file.rfind(os.sep)], name)
        if place not in self._modules:
            self._modules[place] = self._search(file, name)
        return self._modules[place]

    def _search(self, file: str, name: str) -> Optional[str]:
        plain = name.lstrip(".")
        folder = os.path.dirname(file)
        path = plain.replace(".", os.sep)
        if plain != name:
            for _ in range(min(len(name) - len(plain), _MAX_FOLDERS) - 1):
                folder = os.path.dirname(folder)
            return self._file(folder, path)
        root = self._root(folder)
        for _ in range(_MAX_FOLDERS):
            found = self._file(folder, path)
            if found is not None and found != file:
                return found
            if folder == root:
                return None
            folder = os.path.dirname(folder)
        return None

    def _file(self, folder: str, path: str) -> Optional[str]:
        """The module of a folder; each place is looked at once."""
        place = os.path.join(folder, path) if path else folder
        if place not in self._places:
            package = os.path.join(place, "__init__.py")
            candidates = [f"{place}.py", package] if path else [package]
            self._places[place] = next(
                (one for one in candidates if one in self.facts or os.path.isfile(one)), None
            )
        return self._places[place]

    def _root(self, folder: str) -> str:
        """The repository's root; without one the folder itself, so that no stranger's folder is read."""
        if folder not in self._roots:
            self._roots[folder] = repository_root(folder) or folder
        return self._roots[folder]

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

    def _instantiated(self, file: str, target: str, call: Call) -> None:
        key = self.find(file, target) if target else None
        if key is not None:
            self.instantiations.setdefault(key, []).append(Instantiation(file, call))
        elif not target or (target not in self.facts[file].imports and "." not in target):
            self.dynamic.setdefault(file, call.line)

    def _wrappers(self, file: str, names: str) -> list[Call]:
        """The instantiating calls inside the function that a name means."""
        for name in names.split("|"):
            module, _, function = name.rpartition(".")
            place = self._module(file, module) if module else file
            if place is not None and place not in self.facts and "instantiate" in function:
                self._missing.add(place)
            calls = self.facts[place].calls if place in self.facts else ()
            found = [call for call in calls if call.function == function and is_instantiation(call.name)]
            if found:
                return found
        return []


def repository_root(folder: str) -> Optional[str]:
    """The nearest folder at or above this one that git calls its own."""
    while not os.path.exists(os.path.join(folder, ".git")):
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above
    return folder


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
