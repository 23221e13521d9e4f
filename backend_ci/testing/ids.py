"""One identity for a test, whatever spells it: unittest or pytest, `PRIVATEUSE1` or the backend's own name.

PyTorch names a device test `<method>[_<parameters>]_<device>[_<dtypes>]` in a class `<class><DEVICE>`
(instantiate_test in torch/testing/_internal/common_device_type.py). The class says `PRIVATEUSE1` or the backend's
name, depending on which class of a file was made first; the method says the backend's name, in some versions
`privateuse1`. Here both are one device, written `privateuse1`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple, Optional

PRIVATEUSE1 = "privateuse1"
# Devices of PyTorch's own that test classes are made for.
_OTHER_DEVICES = ("cpu", "cuda", "hpu", "lazy", "meta", "mps", "mtia", "xla", "xpu")
DTYPES = (
    "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
    "float16", "bfloat16", "float32", "float64", "complex32", "complex64", "complex128",
    "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn_x2",
    "quint8", "qint8", "qint32", "quint4x2", "quint2x4", "int1", "int2", "int3", "int4", "int5", "int6", "int7",
    "uint1", "uint2", "uint3", "uint4", "uint5", "uint6", "uint7",
)  # fmt: skip

_DTYPES = frozenset(DTYPES)
_UNITTEST = re.compile(r"(?P<method>\w[^\s()]*) \((?P<owner>[^\s()]+)\)")
_MAIN = "__main__"
_MAIN_DOT = _MAIN + "."


class BadTestId(ValueError):
    """A text that names no test. The message says what was expected."""


class TestId(NamedTuple):  # made once a test and entry: a third of a dataclass's time
    """A test in its parts. Absent parts are empty.

    `owner` is the class without its device (nested classes joined by `::` or `.`, as it was spelled); `method` comes
    without parameters, device and dtypes, as far as these can be told from the name; `dtypes` are in their order.
    `class_token` and `device_token` keep the spelling of the device, so that a parsed id renders as it was.
    """

    owner: str
    method: str
    file: str = ""
    module: str = ""
    parameters: str = ""
    bracketed: bool = False
    device: str = ""
    dtypes: tuple[str, ...] = ()
    class_token: str = ""
    device_token: str = ""

    @property
    def stem(self) -> str:
        """The method with its parameters, without device and dtypes."""
        if not self.parameters:
            return self.method
        return f"{self.method}[{self.parameters}]" if self.bracketed else f"{self.method}_{self.parameters}"

    @property
    def class_name(self) -> str:
        """The class without its device; nested ones are joined by dots, as both spellings can be compared."""
        return self.owner.replace("::", ".")

    @property
    def dtype(self) -> str:
        """All dtypes as one text, as in the name of the test."""
        return "_".join(self.dtypes)

    @property
    def path(self) -> str:
        """The file, or the one that the module means. Empty when neither is known."""
        if self.file or not self.module or self.module == _MAIN:
            return self.file
        return self.module.replace(".", "/") + ".py"

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What is the same for the same test in every spelling: class, stem, device, dtype."""
        return self.class_name, self.stem, self.device, self.dtype

    def spelled(self, backend: str, *, class_token: str = "") -> TestId:
        """The same test as a PyTorch with this backend's name spells it; only tests of the backend change."""
        if self.device != PRIVATEUSE1:
            return self
        return self._replace(device_token=backend, class_token=class_token or PRIVATEUSE1.upper())


TestId.__test__ = False  # type: ignore[attr-defined]  # not a pytest class


class TestNames:
    """Reads and writes the ids of tests on known devices.

    `backends`: names that stand for `privateuse1`, in any case. `methods`: names of test methods as the source has
    them, by which parameters are told from the method; pytest's `[…]` needs no such help.
    """

    __test__ = False  # not a pytest class

    def __init__(self, backends: Iterable[str] = (), methods: Iterable[str] = ()) -> None:
        named = {name.lower() for name in backends if name}
        self._devices = {name: name for name in _OTHER_DEVICES}
        self._devices.update(dict.fromkeys((*named, PRIVATEUSE1), PRIVATEUSE1))
        # The longest first: a name may be the end of another.
        self._class_tokens = tuple(sorted((name.upper() for name in self._devices), key=len, reverse=True))
        known = {*self._devices, *DTYPES}
        self._joined = tuple(f"_{name}" for name in known if "_" in name)
        self._plain = frozenset(known - {name.rpartition("_")[2] for name in self._joined})
        self._classes: dict[str, tuple[str, str, str]] = {}
        self._methods = frozenset(methods)

    def parse(self, text: str) -> TestId:
        """A test in unittest's or pytest's spelling. Raises BadTestId."""
        spelled = _UNITTEST.fullmatch(text)
        if spelled:
            return self._unittest(spelled["method"], spelled["owner"])
        if "::" in text:
            return self._pytest(text)
        if "." in text and "/" not in text and not re.search(r"[\s()\[\]]", text):
            owner, _, method = text.rpartition(".")
            return self._unittest(method, owner)
        raise BadTestId("a test is `test (module.Class)`, `module.Class.test` or `file.py::Class::test`")

    def canonical(self, device: str) -> Optional[str]:
        """A device's one name, or None when it is not known."""
        return self._devices.get(device.lower())

    def device_of_class(self, name: str) -> tuple[str, str, str]:
        """A class name as (generic part, canonical device, token as spelled)."""
        found = self._classes.get(name)
        if found is None:
            found = self._classes[name] = self._class_tail(name)
        return found

    def _class_tail(self, name: str) -> tuple[str, str, str]:
        for token in self._class_tokens:
            if name.endswith(token) and len(name) > len(token):
                return name[: -len(token)], self._devices[token.lower()], token
        return name, "", ""

    def _unittest(self, method: str, owner: str) -> TestId:
        # Python 3.11 and newer add the method: `test_x (module.Class.test_x)`.
        if owner.endswith(method) and owner[: -len(method)].endswith("."):
            owner = owner[: -len(method) - 1]
        if owner.startswith(_MAIN_DOT):
            module, cls = _MAIN, owner[len(_MAIN_DOT) :]
        else:
            parts = owner.split(".")
            first = next((i for i, part in enumerate(parts) if part.lstrip("_")[:1].isupper()), None)
            if first is None:
                raise BadTestId("no class is named; classes begin with a capital letter")
            module, cls = ".".join(parts[:first]), ".".join(parts[first:])
        if not method or not cls:
            raise BadTestId("the class or the method is missing")
        return self._split(cls, method, module=module)

    def _pytest(self, text: str) -> TestId:
        plain, bracket, rest = text.partition("[")
        parts = plain.split("::")
        file = parts.pop(0) if parts[0].endswith(".py") or "/" in parts[0] else ""
        if not parts or not all(parts):
            raise BadTestId("between `::` stand the file, the class and the test")
        method = parts.pop() + bracket + rest
        return self._split("::".join(parts), method, file=file)

    def _split(self, owner: str, method: str, *, file: str = "", module: str = "") -> TestId:
        plain, bracket, rest = method.partition("[")
        if bracket and not rest.endswith("]"):
            raise BadTestId("a `[` is not closed")
        parameters, bracketed = rest[:-1], bool(bracket)
        stem, token, dtypes = self._method_tail(plain)
        generic, device, class_token = self.device_of_class(owner) if token else (owner, "", "")
        # A device is one only when class and method agree: `TestCUDA.test_x` is a class of that name.
        if not token or device != self._devices[token]:
            generic, stem, device, dtypes, class_token, token = owner, plain, "", (), "", ""
        if self._methods and not bracketed:
            source = self._source_method(stem)
            stem, parameters = source, stem[len(source) + 1 :]
        return TestId(generic, stem, file, module, parameters, bracketed, device, dtypes, class_token, token)

    def _method_tail(self, name: str) -> tuple[str, str, tuple[str, ...]]:
        """A method as (what comes before the device, device as spelled, dtypes). Without device: all empty."""
        dtypes: list[str] = []
        end = len(name)
        while True:
            start = name.rfind("_", 0, end)
            token = name[start + 1 : end]
            if token not in self._plain and name.endswith(self._joined, 0, end):
                start = max(end - len(each) for each in self._joined if name.endswith(each, 0, end))
                token = name[start + 1 : end]
            if start <= 0:
                return "", "", ()
            if token in self._devices:
                return name[:start], token, tuple(reversed(dtypes))
            if token not in _DTYPES:
                return "", "", ()
            dtypes.append(token)
            end = start

    def _source_method(self, stem: str) -> str:
        """The longest known method that the stem is or begins with, or the stem."""
        end = len(stem)
        while end > 0:
            if stem[:end] in self._methods:
                return stem[:end]
            end = stem.rfind("_", 0, end)
        return stem


def unittest_spelling(test: TestId) -> str:
    """`test (module.Class)`, as unittest and PyTorch's disabled-tests files have it. Brackets stand last."""
    module = test.module or _MAIN
    return f"{_method(test)} ({module}.{test.class_name}{test.class_token})"


def pytest_spelling(test: TestId) -> str:
    """`file.py::Class::test`, without the parts that are not known."""
    owner = f"{test.owner}{test.class_token}"
    return "::".join(part for part in (test.path, owner, _method(test)) if part)


def _method(test: TestId) -> str:
    stem = test.method if test.bracketed else test.stem
    device = f"_{test.device_token}" if test.device else ""
    dtypes = "".join(f"_{dtype}" for dtype in test.dtypes)
    return f"{stem}{device}{dtypes}" + (f"[{test.parameters}]" if test.bracketed else "")


def same_file(one: str, other: str) -> bool:
    """Whether two paths can mean one file: equal, or one ends with the other. An unknown one is any."""
    if not one or not other or one == other:
        return True
    longer, shorter = (one, other) if len(one) > len(other) else (other, one)
    return longer.endswith("/" + shorter)
