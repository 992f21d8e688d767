import pytest

from common.urls import (
    ApplicationUrl,
    InvalidUrl,
    hide_query,
    parse_application_url,
    parse_redirect_target,
    parse_webhook_url,
)


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("https://app.example.com", ("https", "app.example.com", 443, "")),
        ("HTTP://App.Example.com./", ("http", "app.example.com", 80, "/")),
        ("http://app.example.com:8080/a/b/", ("http", "app.example.com", 8080, "/a/b/")),
        ("http://app.example.com:/a", ("http", "app.example.com", 80, "/a")),
        ("http://app.example.com/%2e/a%2Fb//c;d=1", ("http", "app.example.com", 80, "/%2e/a%2Fb//c;d=1")),
        ("https://bücher.example", ("https", "xn--bcher-kva.example", 443, "")),
        ("http://127.0.0.1:9000", ("http", "127.0.0.1", 9000, "")),
        ("http://[2001:DB8::1]:9000/x", ("http", "2001:db8::1", 9000, "/x")),
        ("http://localhost:3000", ("http", "localhost", 3000, "")),
    ],
)
def test_an_application_url_is_taken_apart(text: str, parsed: tuple[str, str, int, str]) -> None:
    url = parse_application_url(text)

    assert (url.scheme, url.host, url.port, url.path) == parsed


@pytest.mark.parametrize(
    "text",
    [
        "",
        "app.example.com",
        "//app.example.com",
        "ftp://app.example.com",
        "javascript:alert(1)",
        "http://",
        "http:///path",
        "http://:80/",
        "http:/app.example.com",
        "http://user@app.example.com",
        "http://user:secret@app.example.com",
        "http://@app.example.com",
        "http://app.example.com?",
        "http://app.example.com/?a=b",
        "http://app.example.com/#",
        "http://app.example.com/a b",
        " http://app.example.com",
        "http://app.example.com\n",
        "http://app.example.com/\r\nX-Injected: 1",
        "http://app.example.com/\x00",
        "http://app.example.com\\@evil.example",
        "http://app.example.com/a\\b",
        "http://app.example.com/%zz",
        "http://app.example.com/é",
        "http://app.example.com:0/",
        "http://app.example.com:65536/",
        "http://app.example.com:8O",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0177.0.0.1/",
        "http://[::1/",
        "http://[::1%25eth0]/",
        "http://[1.2.3.4]/",
        "http://a..b/",
        "http://%61pp.example.com/",
        "http://app.example.com/" + "a" * 2048,
    ],
)
def test_what_is_no_application_url_is_refused(text: str) -> None:
    with pytest.raises(InvalidUrl):
        parse_application_url(text)


def test_an_address_the_host_says_can_be_shown_to_the_policy() -> None:
    assert str(ApplicationUrl("http", "app.localhost", 80, "").address) == "127.0.0.1"
    assert str(ApplicationUrl("http", "10.0.0.1", 80, "").address) == "10.0.0.1"
    assert ApplicationUrl("http", "app.example.com", 80, "").address is None


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("www.example.com", "https://www.example.com"),
        ("WWW.Bücher.Example.", "https://www.xn--bcher-kva.example"),
        ("http://example.com:80/", "http://example.com/"),
        ("https://example.com:8443/in/", "https://example.com:8443/in/"),
        ("example.com/in", "https://example.com/in"),
    ],
)
def test_redirects_lead_to_a_url_or_a_name(text: str, canonical: str) -> None:
    assert str(parse_redirect_target(text)) == canonical


@pytest.mark.parametrize(
    "text",
    [
        "",
        "com",
        "localhost",
        "192.0.2.1",
        "https://[2001:db8::1]/",
        "a@example.com",
        "example.com?x",
        "example.com#a",
        "ftp://a.example",
        "//example.com",
        "javascript:alert(1)",
        "example.com\r\nX: 1",
        "*.example.com",
        "/path",
    ],
)
def test_what_is_no_redirect_target_is_refused(text: str) -> None:
    with pytest.raises(InvalidUrl):
        parse_redirect_target(text)


@pytest.mark.parametrize(
    "text", ["https://hooks.example/in?key=1&to=/a?b", "http://hooks.example?k=%20", "https://h.example"]
)
def test_a_webhook_url_may_carry_a_query(text: str) -> None:
    assert parse_webhook_url(text) == text


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://hooks.example/in", "https://hooks.example/in"),
        ("https://hooks.example/in?", "https://hooks.example/in?…"),
        ("https://hooks.example?key=a?b", "https://hooks.example?…"),
    ],
)
def test_a_query_is_hidden_as_a_whole(url: str, shown: str) -> None:
    assert hide_query(url) == shown


def test_a_webhook_url_becomes_canonical() -> None:
    assert parse_webhook_url("HTTPS://Bücher.Example.:443?Key=%7e") == "https://xn--bcher-kva.example?Key=%7e"


@pytest.mark.parametrize(
    "text",
    [
        "https://hooks.example/in#part",
        "https://hooks.example/?a#b",
        "https://u@hooks.example/",
        "https://h.example/?a b",
        "?a",
    ],
)
def test_what_is_no_webhook_url_is_refused(text: str) -> None:
    with pytest.raises(InvalidUrl):
        parse_webhook_url(text)
