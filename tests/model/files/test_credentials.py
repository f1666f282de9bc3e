"""Texts that hold a key, a token or a password are found; texts that only mention one are not."""

import pytest

from lacuna_model.files.credentials import holds_credential
from lacuna_model.files.secrets import is_secret

HEX = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b"


@pytest.mark.parametrize(
    "text",
    [
        f'API_TOKEN = "{HEX}"',
        f"api_token: {HEX}",
        f"export ACCESS_KEY={HEX}  # of the staging machine",
        'url = "postgres://app:s3cr3t-9@db.internal/x"',
        "redis://:Xk29dkP1@cache:6379/0",
        "db:\n  password: hunter2!x\n",
        "[smtp]\npassword = Tr0ub4dor&3\n",
        "hf_" + "aB3dE6gH9j" * 4,
        "dop_v1_" + HEX + HEX[:24],
        "glrt-" + "aB3dE6gH9jK2mN5pQ8sT",
        "AGE-SECRET-KEY-1" + "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L" * 2,
    ],
)
def test_credentials_are_found(text: str) -> None:
    assert holds_credential(text)


@pytest.mark.parametrize(
    "text",
    [
        "token: str = None",
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
    ],
)
def test_code_that_only_mentions_credentials_is_not_taken_for_one(text: str) -> None:
    assert not holds_credential(text)


@pytest.mark.parametrize(
    "name",
    [
        "deploy_key",
        "token.txt",
        "api-tokens.txt",
        "kubeconfig.yaml",
        "prod.kubeconfig",
        "env.production",
        "id_deploy.key",
    ],
)
def test_files_that_hold_secrets_are_recognised_by_their_names(name: str) -> None:
    assert is_secret(f"config/{name}")


@pytest.mark.parametrize("name", ["tokens.json", "tokenizer.txt", "env.py", "keys.py", "development.md"])
def test_other_files_are_not_taken_for_secrets(name: str) -> None:
    assert not is_secret(f"src/{name}")
