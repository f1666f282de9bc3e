"""Texts that hold a key, a token or a password are found; texts that only mention one are not."""

import pytest

from lacuna_model.files.secrets import holds_credential, is_secret

HEX = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b"
RANDOM = "q8Xz2LmPw0VtY7nRk4Hs9JdB1cF6gA3e"


@pytest.mark.parametrize(
    "text",
    [
        f'API_TOKEN = "{HEX}"',
        'KEY = """-----BEGIN RSA ' + 'PRIVATE KEY-----"""',
        "aws = 'AKIA" + "IOSFODNN7ABCDEFG'",
        f"password = {RANDOM!r}",
        f'{{"api_key": "{RANDOM}"}}',
        f"url = 'https://host/{RANDOM}{RANDOM[::-1]}Z'",
        f"gh = 'ghp_{RANDOM}Ab3d'",
        f"api_token: {HEX}",
        f"export ACCESS_KEY={HEX}  # of the staging machine",
        'url = "postgres://app:s3cr3t-9@db.internal/x"',
        "redis://:Xk29dkP1@cache:6379/0",
        "db:\n  password: hunter2!x\n",
        "[smtp]\npassword = Tr0ub4dor&3\n",
        "hf_" + "aB3dE6gH9j" * 4,
        "dop_v1_" + HEX + HEX[:24],
        "glrt-" + "aB3dE6gH9jK2mN5pQ8sT",
        "xoxb-" + "123456789012-" + "aB3dE6gH9jK2mN5pQ8sTuV4w",
        "https://hooks.slack.com/" + "services/T02AB34CD/B05EF67GH/aB3dE6gH9jK2mN5pQ8sTuV4w",
        "GOCSPX-" + "aB3dE6gH9jK2mN5pQ8sTuV4w",
        "whsec_" + "aB3dE6gH9jK2mN5pQ8sTuV4wX7yZ1cF0",
        "shpat_" + HEX[:32],
        "dckr_pat_" + "aB3dE6gH9jK2mN5pQ8sTuV4wX7y",
        "SECRET_KEY = 'django-insecure-3%x)kq&8w!z@p5v#r1^t_n7=m+j(y2b$c9d*f6g4h'",
        "SECRET_KEY = '3%x)kq&8w!z@p5v#r1^t_n7=m+j(y2b$c9d*f6g4h0'",
        'connect("Server=db.internal;Database=app;User Id=app;Password=Tr0ub4dor-3;")',
        "Authorization: Basic " + "YWxhZGRpbjpvcGVuc2VzYW1l",
        "sk-ant-api03-" + "aB3dE6gH9j" * 9 + "AA",
        "key-" + HEX[:32],
        "123456789:AA" + "aB3dE6gH9jK2mN5pQ8sTuV4wX7yZ1cF0d",
        "AccountKey=" + "aB3dE6gH9jK2mN5pQ8sT" * 4 + "+w==",
        "[Interface]\nPrivateKey = " + "aB3dE6gH9jK2mN5pQ8sTuV4wX7yZ1cF0dG5hJ8kLmNo" + "=",
        "$2b$12$" + "aB3dE6gH9jK2mN5pQ8sTuV4wX7yZ1cF0dG5hJ8kLmNoPqRsTuVwXy",
        "machine example.org login me password hunter2",
        "$ANSIBLE_VAULT;1.1;AES256\n33303833\n",
        "PuTTY-User-Key-File-3: ssh-ed25519\n",
        "glsa_" + "aB3dE6gH9jK2mN5pQ8sTuV4wX7yZ1cF0" + "_" + HEX[:8],
        'heroku_api_key = "12345678-90ab-4cde-8f01-23456789abcd"',
        "dp.pt." + "aB3dE6gH9jK2mN5pQ8sTuV4wX7yZ1cF0dG5hJ8kLmNo",
        "pscale_tkn_" + "aB3dE6gH9jK2mN5pQ8sTuV4wX7yZ1cF0",
        "AGE-SECRET-KEY-1" + "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L" * 2,
        "password = 'Tr0ub4dor&3'",
        'connect(user="app", password="hunter2!")',
        "SECRET_KEY = '$177_*1y3wc#*w2a*e7og0x6z^9!jm05z2)$@v(7=fkxuxet6l'",
        "api_key: '" + "yc3edqmevxrvcqurtaebog43yq15i5la" + "'",
        "x-api-key: " + "q7BQRKw7ah1WXPs5c42LMSdpRhcYunX6",
        "curl -H 'Authorization: Bearer " + "6MUoTRczcMkBmWtjyVcJtOO8lK1oKFTH' x",
        "CODECOV_TOKEN=3f8a1c2e-1b2c-4d5e-8f90-a1b2c3d4e5f6",
        "jdbc:mysql://db/app?user=app&password=oumQ5geJ6xZG9!",
        "otpauth://totp/a?secret=ALRQFUYQTZ2DTTPY3QTMIDNX57JXVM5D&issuer=x",
        "<server><password>Wn4Dd0RmTvE3dJSV</password></server>",
        '<add key="ApiKey" value="rWIEQJ2QAWerzxT6zHZs2OhqCXacI0SK"/>',
        "env:\n  - name: DB_PASSWORD\n    value: Tr0ub4dor&3\n",
        "ENV DB_PASSWORD Tr0ub4dor&3",
        "AROA" + "J7K2M5P8Q3R6T9V4",
        "ABIA" + "J7K2M5P8Q3R6T9V4",
        "twilio('AC" + HEX[:32] + "')",
        "SK" + HEX[:32],
        f"https://{HEX[:32]}@o123456.ingest.sentry.io/4501234",
        f"dsn: https://{HEX[:32]}:{HEX[8:]}@sentry.internal/42",
        "AGE-SECRET-KEY-1" + "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
        "MTk41iaeOV4qBkdfQ1y3GQsM." + "pSscDl.krCaqx9vJupc94tnwlavyfErGPm",
    ],
)
def test_credentials_are_found(text: str) -> None:
    assert holds_credential(text)


@pytest.mark.parametrize(
    "text",
    [
        "token: str = None",
        "password = get_password_from_environment()",
        "token = 'csrf_token_for_the_form'",
        "digest = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'",
        "path = 'usr/share/python3/dist-packages/somepackage/subpackage/module'",
        "password: string;",
        "api_key = os.environ['API_KEY']",
        "token = get_token(request)",
        "secret = secrets.token_hex(16)",
        "postgres://user:password@host/db",
        "https://{user}:{password}@host",
        "https://$USER:$PASSWORD@host",
        f'digest = "{HEX}"',
        "commit: " + HEX,
        "password: changeme123",
        "tokens = [1, 2, 3]",
        "SECRET_KEY = os.environ['DJANGO_SECRET_KEY_OF_THE_PRODUCTION_SITE']",
        "Server=db;User Id={user};Password={password};",
        "# Basic authentication with a user and a password",
        "headers = {'Authorization': f'Basic {encoded}'}",
        "from airtable_integration_of_version_2 import linear_regression_model_3",
        "sha512-8f3b0c9d2e1a4f5b6c7d8e9f0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d",
        "password = '$PASSWORD_OF_2024!'",
        'const label = { password: "Your password" };',
        'id: "3f8a1c2e-1b2c-4d5e-8f90-a1b2c3d4e5f6"',
        "<password>{{ password }}</password>",
        "https://example.org/?token=TOKEN",
        "ENV DB_PASSWORD=$DB_PASSWORD",
        "https://example.org/path@2024/17",
        "AC" + "x" * 32,
        "MAC" + HEX[:32],
        "# Bearer tokens of the second version are checked in 3 steps",
    ],
)
def test_code_that_only_mentions_credentials_is_not_taken_for_one(text: str) -> None:
    assert not holds_credential(text)


def test_texts_of_nothing_but_words_of_rules_end() -> None:
    """Each word brings the rules of a service, and each rule looks at the whole text."""
    words = ("adobe", "airtable", "linear", "live_", "ext_", "Basic ", "sig=", "secret_", "pat")
    words += ("1Aa" * 9, "=", " ", "'")
    for text in ("".join(words) * 4_000, "".join(f"{word} = " for word in words) * 4_000, "aB1" * 130_000):
        holds_credential(text)


@pytest.mark.parametrize(
    "name",
    [
        "deploy_key", "token.txt", "api-tokens.txt", "kubeconfig.yaml", "prod.kubeconfig", "env.production",
        "id_deploy.key", "secrets.py", "gcp-key.json", "appsettings.Production.json", "vault.yml", "rclone.conf",
        "wg0.conf", "firebase-adminsdk-x1.json", "local_settings.py", "aws-credentials.csv", "application-prod.yml",
        "settings.local.php", "azureProfile.json", "nuget.config", "logins.json", ".token", "proxy.yaml.enc",
        "credentials.py", "tokens.json", "refresh_token.json", "appsettings.json", "web.config", "gradle.properties",
        "dump.sql", "shop-dump.sql", "cookies.txt",
    ],
)  # fmt: skip
def test_files_that_hold_secrets_are_recognised_by_their_names(name: str) -> None:
    assert is_secret(f"config/{name}")


@pytest.mark.parametrize(
    "name",
    [
        "special_tokens.json", "design-tokens.json", "tokenizer.txt", "env.py", "keys.py", "development.md",
        "vault.go", "private_key.py", "settings.py", "settings.xml", "schema.sql", "gradle-wrapper.properties",
        "credentials_test.py", "tokens.py", "package.config",
    ],
)  # fmt: skip
def test_other_files_are_not_taken_for_secrets(name: str) -> None:
    assert not is_secret(f"src/{name}")
