"""Secrets are found by their form, their name or their place; what only resembles one stays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallite.text.secrets import find_secrets, redact, redact_all

from .adversarial import growth, run_of

WORD = "Osprey58tarn"
RANDOM = "k3Jd8sLq0Zx7Vb2Nm5Pw9Rt1Yc6Hf4Ge"
DIGEST = "9f86d081884c7d659a2feaa0c55ad015"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("the key is AKIAIOSFODNN7EXAMPLE.", "the key is [redacted: AWS access key]."),
        (f"token ghp_{'aB3d' * 9}, expires", "token [redacted: GitHub token], expires"),
        ("key sk-ant-api03-" + "Ab1_" * 12, "key [redacted: Anthropic key]"),
        (f"a new service: heron_sk_live_{RANDOM}", "a new service: [redacted: API key]"),
        ("card 4111 1111 1111 1111 of Ada", "card [redacted: card number] of Ada"),
        ("to DE89 3704 0044 0532 0130 00 please", "to [redacted: IBAN] please"),
        ("GB82WEST12345698765432", "[redacted: IBAN]"),
        ("a -----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY----- b", "a [redacted: private key] b"),
        ("-----BEGIN PRIVATE KEY-----\nMII", "[redacted: private key]"),
        (f"postgres://ada:{WORD}@db/x", "postgres://ada:[redacted: password]@db/x"),
        (f"redis://:{WORD}@cache:6379", "redis://:[redacted: password]@cache:6379"),
        ("mongodb://root:a/b@c!@h.example", "mongodb://root:[redacted: password]@h.example"),
        (f"https://hooks.example.com/in/{RANDOM}", "https://hooks.example.com/in/[redacted: password]"),
        (f"https://x.example/blob?sp=r&sig={RANDOM}&v=1", "https://x.example/blob?sp=r&sig=[redacted: password]&v=1"),
        (f"Authorization: Bearer {RANDOM}", "Authorization: Bearer [redacted: key or token]"),
        ("authorization: Basic YWRhOk9zcHJleTU4", "authorization: Basic [redacted: key or token]"),
        (f"Cookie: theme=dark; sid={RANDOM}", "Cookie: theme=dark; sid=[redacted: cookie]"),
        ("DB_PASSWORD=grouse", "DB_PASSWORD=[redacted: password]"),
        (f'"clientSecret": "{RANDOM}", "x": 1', '"clientSecret": "[redacted: key or token]", "x": 1'),
        (f"HERON_KEY={RANDOM}", "HERON_KEY=[redacted: key or token]"),
        ("db:\n  password: grouse\n  port: 1", "db:\n  password: [redacted: password]\n  port: 1"),
        (f"<Password>{WORD}</Password>", "<Password>[redacted: password]</Password>"),
        (f"- name: API_TOKEN\n  value: {RANDOM}", "- name: API_TOKEN\n  value: [redacted: key or token]"),
        (f"Server=db;Pwd={WORD};Encrypt=true", "Server=db;Pwd=[redacted: password];Encrypt=true"),
        ("tool --password grouse --dry-run", "tool --password [redacted: password] --dry-run"),
        (f"curl -u ada:{WORD} https://x", "curl -u ada:[redacted: password] https://x"),
        (f"mysql -uada -p{WORD} shop", "mysql -uada -p[redacted: password] shop"),
        ("machine x login ada password grouse", "machine x login ada password [redacted: password]"),
        ("password of the shop is Tr0ub4dor&3, user ci", "password of the shop is [redacted: password], user ci"),
        ('The password is "grouse".', 'The password is "[redacted: password]".'),
        (f"We set the password to {WORD} today", "We set the password to [redacted: password] today"),
        (f"{WORD} is the password of the router", "[redacted: password] is the password of the router"),
        (f"creds: ada / {WORD}", "creds: ada / [redacted: password]"),
        ("my PIN is 9921.", "my PIN is [redacted: PIN]."),
        ("my api key is 9f8e7d6c5b4a39281706", "my api key is [redacted: key or token]"),
        ("seed phrase: " + "otter " * 11 + "lake", "seed phrase: [redacted: password]"),
    ],
)  # fmt: skip
def test_a_secret_is_replaced_by_its_kind_and_the_rest_stays(text, kept):
    assert redact(text) == kept


@pytest.mark.parametrize(
    "sentence",
    [
        "Das Passwort für den Server lautet {}.", "Wir haben das Kennwort auf {} geändert", "Le mot de passe est {}",
        "La contraseña del correo es {}", "A senha agora é {}", "La nuova password è {}", "Het wachtwoord luidt {}",
        "Hasło do sieci to {}", "Lösenordet är {}", "Adgangskoden er {}", "Salasana on {}", "Heslo je {}",
        "Пароль от сервера: {}", "Şifre: {}", "パスワードは{}です", "密码是{}。", "비밀번호는 {} 입니다",
        "كلمة المرور هي {}", "Ο κωδικός είναι {}", "Kata sandi adalah {}",
    ],
)  # fmt: skip
def test_a_password_is_found_in_a_sentence_of_any_language(sentence):
    assert redact(sentence.format(WORD)) == sentence.format("[redacted: password]")


@pytest.mark.parametrize(
    "text",
    [
        "card 4111 1111 1111 1112 has a wrong check digit", "to DE88 3704 0044 0532 0130 00 is a wrong IBAN",
        "at percentiles 5 10 15 20 25 30 40 50 60 70", "call 415-555-2671 or +49 30 1234567",
        f"sha256 {DIGEST}{DIGEST}", f"commit {DIGEST}a1b2c3d4 mends the refresh of a token",
        "id 01a200f4-ac15-72b6-ad8b-e9846e2cfc78 at 2026-11-22T12:13:14Z", f'"integrity": "sha512-{RANDOM}=="',
        f"data:image/png;base64,{RANDOM}", f"ssh-ed25519 AAAAC3NzaC1{RANDOM}", f"cache_key={DIGEST}", "key=value1",
        f"public_key: {RANDOM}", "We reset the password flow last week", "password: see the vault",
        "the password is in the vault", "the password is two-factor", "the token is SHA-256 hashed",
        "the token of the issuer is rotated", "the password for staging is the one of 2019", "Which API key is used?",
        "token budget: 800", "max_tokens=4096", "passwords=two", "the password of ada42 is reset",
        "the password is at least 12 characters long", "use the --token flag", "--password is deprecated",
        "password = getpass()", "token = tokens[i]", "api_key = os.environ['KEY']", "password: z.string().min(8)",
        "password: string", "ssl_password=ssl_password", "PASSWORD=$PASSWORD", "TOKEN=${{ secrets.TOKEN }}",
        "password: <your-password>", "token: xxxxxxxx", "PASSWORD=changeme", "docker run -u 1000:1000 x",
        "docker run -u node:node x", "postgres://user:password@localhost/x", "http://localhost:8080/a@b",
        "Bearer of good news", "the pass is at 3,200m", "monkey=Barrel123of", "version 1.2.3, build 1234567890123",
    ],
)  # fmt: skip
def test_what_only_looks_like_one_stays(text):
    assert find_secrets(text) == []


def test_invisible_characters_hide_no_secret():
    family = "\U0001f468\u200d\U0001f469"
    assert redact("pass\u200bword: Os\u2060prey58tarn, ok") == "pass\u200bword: [redacted: password], ok"
    assert redact(f"ghp_\ufeff{'aB3d' * 9} {family}") == f"[redacted: GitHub token] {family}"
    unchanged = f"{family} met at the caf\u00ade"
    assert redact(unchanged) == unchanged


def test_a_secret_is_found_wherever_it_stands_in_a_long_line():
    key = "ghp_" + "aB3d" * 9
    for place in (0, 3000, 4090, 6144, 9999):
        text = "x " * (place // 2) + key + " y" * 3000
        (secret,) = find_secrets(text)
        assert text[secret.start : secret.stop] == key


def test_a_long_value_is_redacted_to_its_end():
    assert redact(f"TOKEN={RANDOM * 200} next") == "TOKEN=[redacted: key or token] next"
    assert redact(f'token: "{RANDOM * 200}" next') == 'token: "[redacted: key or token]" next'


def test_a_field_tells_of_its_value():
    assert redact_all({"input": {"passphrase": "grouse", "token": 4096, "passwords": ["grouse"]}}) == {
        "input": {"passphrase": "[redacted: password]", "token": 4096, "passwords": ["[redacted: password]"]}
    }


_PIECES = (
    "password", "the password is ", "token", " is ", ": ", "=", '"', "'", "(", ")", " ", "\n", WORD, RANDOM, "grouse",
    "key", "://", "a:", "@h", "Cookie: ", "--password ", " -u a:", "ghp_" + "aB3d" * 9, "AKIAIOSFODNN7EXAMPLE",
    "\u200b", "[redacted: x]", "creds", " / ", "パスワードは", "пароль ", "İ", ",", ";", "&", "Bearer ",
    "4111 1111 1111 1111", "-----BEGIN PRIVATE KEY-----", "9921", "PIN", "seed phrase: ", "otter " * 12,
)  # fmt: skip


@given(st.lists(st.sampled_from(_PIECES), max_size=14).map("".join))
def test_what_is_redacted_stays_as_it_is(text):
    once = redact(text)
    assert redact(once) == once


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    [
        "password=", "password is ", "key=", "token is a ", "://a:", "cookie=a;", " -u a:", "[redacted: ",
        "パスワードは", "пароль ", "is password ", "password (", "https://hook/", "creds: a/", "seed phrase a ",
        "a1B2c3D4", "İ", "eyJa.", "\u200b",
    ],
)  # fmt: skip
def test_secrets_take_time_in_proportion_to_the_text(unit):
    assert growth(redact, run_of(unit, end="!")) is None
