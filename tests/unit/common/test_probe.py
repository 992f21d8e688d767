from pathlib import Path

from common.probe import new_nonce, probe_answer
from common.secrets import load_keyring


def test_the_answer_depends_on_key_domain_and_nonce(tmp_path: Path) -> None:
    ours = load_keyring(tmp_path / "a.key", create=True)
    others = load_keyring(tmp_path / "b.key", create=True)
    nonce = new_nonce()

    answer = probe_answer(ours, "www.example.com", nonce)

    assert answer is not None
    assert answer == probe_answer(load_keyring(tmp_path / "a.key"), "www.example.com", nonce)
    assert answer != probe_answer(ours, "www.example.org", nonce)
    assert answer != probe_answer(ours, "www.example.com", new_nonce())
    assert answer != probe_answer(others, "www.example.com", nonce)


def test_a_malformed_nonce_is_not_answered(tmp_path: Path) -> None:
    keyring = load_keyring(tmp_path / "master.key", create=True)

    for nonce in ("", "short", "a" * 65, "../../../../etc/passwd", "a" * 20 + "\n"):
        assert probe_answer(keyring, "www.example.com", nonce) is None
