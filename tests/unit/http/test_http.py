"""One request, one answer, within a deadline in all: against a real server on this machine."""

from __future__ import annotations

import re
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler
from typing import Callable

import pytest
from local_http import LocalServer, Reply

from relay_client.http import MAX_ANSWER_BYTES, Answer, TransportError, request_json

SECRET = "ghs.secret.token"


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def post(url: str, deadline_seconds: float = 20) -> Answer:
    return request_json("POST", url, deadline_seconds=deadline_seconds, bearer=SECRET, body={"a": "ü"})


def failing(url: str, deadline_seconds: float = 20) -> TransportError:
    with pytest.raises(TransportError) as caught:
        post(url, deadline_seconds)
    assert SECRET not in caught.value.reason + caught.value.hint
    return caught.value


def test_a_request_carries_method_json_and_bearer_and_the_answer_is_decoded(server: LocalServer) -> None:
    answer = post(server.answer("/x", Reply(201, {"ok": True}, {"X-Name": "v"})) + "?q=1")
    assert (answer.status, answer.body, answer.headers["x-name"]) == (201, {"ok": True}, "v")
    (request,) = server.requests
    assert (request.method, request.path, request.json) == ("POST", "/x?q=1", {"a": "ü"})
    assert request.headers["authorization"] == f"Bearer {SECRET}"
    assert request.headers["content-type"] == "application/json"


def test_half_a_surrogate_pair_in_the_body_does_not_stop_it(server: LocalServer) -> None:
    request_json("POST", server.answer("/x", Reply()), deadline_seconds=20, body={"title": "\ud800!"})
    assert server.requests[0].json == {"title": "?!"}


@pytest.mark.parametrize("status", [300, 301, 302, 303, 307, 308])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_redirect_is_an_answer_and_is_not_followed(server: LocalServer, status: int, method: str) -> None:
    url = server.answer(
        "/x", Reply(status, {"to": "elsewhere"}, {"Location": server.answer("/thief", Reply())})
    )
    answer = request_json(method, url, deadline_seconds=20, bearer=SECRET)
    assert answer.status == status
    assert server.asked("/thief") == []


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 503])
def test_an_error_status_is_an_answer_with_its_body(server: LocalServer, status: int) -> None:
    answer = post(server.answer("/x", Reply(status, {"detail": "why"})))
    assert (answer.status, answer.body) == (status, {"detail": "why"})


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"\xff\xfe", b"{", b"[" * 100_000, b'{"a": ' + b"9" * 5_000 + b"}"],
    ids=lambda b: ascii(b)[:12],
)
def test_what_is_not_json_is_an_answer_without_a_body(server: LocalServer, body: bytes) -> None:
    answer = post(server.answer("/x", Reply(200, body)))
    assert answer.status == 200
    assert answer.body is None or b"9999" in body  # old Pythons read numbers of any length


@pytest.mark.parametrize("status", [200, 400])
def test_an_answer_that_is_too_large_is_none(server: LocalServer, status: int) -> None:
    assert (
        str(MAX_ANSWER_BYTES)
        in failing(server.answer("/x", Reply(status, b"x" * (MAX_ANSWER_BYTES + 1)))).reason
    )
    assert len(post(server.answer("/x", Reply(status, b"x" * MAX_ANSWER_BYTES))).text) == MAX_ANSWER_BYTES


def dripping(server: LocalServer, begin: bytes, drop: bytes) -> Callable[[BaseHTTPRequestHandler], None]:
    """A server that always sends a little more, so that no single read ever waits long."""

    def drip(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(begin)
        while not server.ending.wait(0.05):
            handler.wfile.write(drop)

    return drip


@pytest.mark.parametrize(
    ("begin", "drop"),
    [
        (b"", b""),
        (b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n"),
        (b"HTTP/1.1 200 OK\r\nX-A: ", b"b"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", b" "),
        (b"HTTP/1.1 500 Oh\r\nContent-Length: 1000000\r\n\r\n", b" "),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
    ],
    ids=["silence", "headers", "one header", "body", "error body", "chunks"],
)
def test_a_server_that_drips_is_left_at_the_deadline(server: LocalServer, begin: bytes, drop: bytes) -> None:
    error = failing(server.answer("/x", dripping(server, begin, drop)), deadline_seconds=0.4)
    assert not server.ending.is_set()  # we left; the server had not stopped
    assert re.search(r"no answer within|timed out|connection broke", error.reason)
    assert error.hint


@pytest.mark.parametrize(
    "begin",
    [
        b"",
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
)
def test_a_server_that_hangs_up_or_speaks_something_else_is_an_error_of_transport(
    server: LocalServer, begin: bytes
) -> None:
    error = failing(server.answer("/x", lambda handler: handler.wfile.write(begin) and None))
    assert error.reason.startswith("connection broke")


def test_a_refused_connection_names_what_to_check() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    error = failing(f"http://127.0.0.1:{port}/x")
    assert "connection failed" in error.reason
    assert "HTTPS_PROXY" in error.hint


def test_a_server_without_tls_behind_https_is_told_apart(server: LocalServer) -> None:
    error = failing(server.url.replace("http:", "https:") + "/x")
    assert "TLS failed" in error.reason
    assert "SSL_CERT_FILE" in error.hint


@pytest.mark.parametrize(
    "url", ["", "relay", "file:///etc/passwd", "ftp://h/x", "data:,x", "http://[::1", "//h/x"]
)
def test_only_http_addresses_are_asked(url: str) -> None:
    assert "is not an http(s) address" in failing(url).reason


@pytest.mark.parametrize(
    "url", ["http://", "http://h h/", "http://127.0.0.1:port/", "http://127.0.0.1/a b", "http://h/ü"]
)
def test_a_broken_address_is_an_error_of_transport(url: str) -> None:
    failing(url)


@pytest.mark.parametrize("bearer", ["secret\n", "secret\r\nX-Evil: 1", "secret€"])
def test_a_token_that_is_no_header_is_neither_sent_nor_shown(server: LocalServer, bearer: str) -> None:
    with pytest.raises(TransportError) as caught:
        request_json("GET", server.answer("/x", Reply()), deadline_seconds=20, bearer=bearer)
    assert "secret" not in caught.value.reason + caught.value.hint
    assert server.requests == []


NOW = 1_764_500_000.0  # Sun, 30 Nov 2025 10:53:20 GMT


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("17", 17.0),
        (" 0 ", 0.0),
        ("Sun, 30 Nov 2025 10:54:20 GMT", 60.0),
        ("Sun, 30 Nov 2025 10:54:20 -0000", 60.0),
        ("Sun, 30 Nov 2025 11:54:20 +0100", 60.0),
        ("Sun, 30 Nov 2025 10:00:00 GMT", 0.0),
        ("", None),
        ("soon", None),
        ("-1", None),
        ("1.5", None),
        ("²", None),
        ("Sun, 30 Nov 99999 10:54:20 GMT", None),
        ("Sun, 30 Nov 2025 10:54:20 +9999999999999999", None),
    ],
)
def test_retry_after_is_seconds_or_a_date_and_anything_else_is_nothing(value: str, seconds: object) -> None:
    assert Answer(429, "", None, {"retry-after": value}).retry_after_seconds(NOW) == seconds


def test_retry_after_in_a_zone_less_date_does_not_depend_on_our_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        answer = Answer(429, "", None, {"retry-after": "Sun, 30 Nov 2025 10:54:20 -0000"})
        assert answer.retry_after_seconds(NOW) == 60.0
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_proxy_is_used_for_other_hosts_and_not_for_those_excepted(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.answer("http://relay.invalid/x", Reply(200, {"through": "proxy"}))
    server.answer("/x", Reply(200, {"through": "nothing"}))
    monkeypatch.setenv("http_proxy", server.url)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert post("http://relay.invalid/x").body == {"through": "proxy"}
    assert server.requests[0].path == "http://relay.invalid/x"
    assert post(server.url + "/x").body == {"through": "nothing"}


def test_a_proxy_for_https_is_asked_for_a_tunnel_and_sees_no_token(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.answer("relay.invalid:443", Reply(403))
    monkeypatch.setenv("https_proxy", server.url)
    failing("https://relay.invalid/x")
    (request,) = server.requests
    assert (request.method, request.path) == ("CONNECT", "relay.invalid:443")
    assert "authorization" not in request.headers


def test_many_requests_at_once_keep_their_answers_apart(server: LocalServer) -> None:
    urls = {number: server.answer(f"/{number}", Reply(200, {"number": number})) for number in range(8)}
    found: dict[int, object] = {}
    threads = [
        threading.Thread(target=lambda n=number, u=url: found.update({n: post(u).body}))  # type: ignore[misc]
        for number, url in urls.items()
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: {"number": number} for number in urls}
