"""Decode a request's JSON as strictly as everything behind it needs."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any, NoReturn

from .refusal import Refusal, explain

_MAX_DIGITS = 20  # any id or count there is; larger ones break databases and conversions to text


@dataclass(frozen=True)
class JsonBody:
    """A decoded body and the SHA-256 of its canonical form: equal for equal content, however written."""

    value: Any
    digest: str


def decode(raw: bytes) -> JsonBody:
    """Decode a body. Raises Refusal 400: not JSON, not finite numbers, or text that is not Unicode.

    RFC 8259 has no NaN and no infinity; a lone surrogate passes Python's decoder, but no database and no page.
    """
    try:
        value = json.loads(raw, parse_constant=_no_constant, parse_int=_bounded_int)
        canonical = json.dumps(
            value, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":")
        )
        return JsonBody(value, hashlib.sha256(canonical.encode("utf-8")).hexdigest())
    except RecursionError:
        problem = "it is nested too deeply"
    except ValueError as error:  # includes UnicodeError and JSONDecodeError
        problem = str(error)
    raise Refusal(
        400,
        explain(
            "The body is not valid JSON",
            seen=f"{len(raw)} bytes, {problem}",
            fix="send one JSON object encoded as UTF-8",
        ),
    )


def _bounded_int(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise ValueError(f"a whole number of {len(digits)} digits")
    return int(digits)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")
