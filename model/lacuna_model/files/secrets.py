"""Recognises files that hold secrets by their names; they are never indexed, quoted or shown."""

import os
import re

_SECRET = re.compile(
    r"""(?xi)
      \.env(rc)? | \.env[._-].* | .*\.env
    | .*\.(pem|key|p8|p12|pfx|pk8|jks|keystore|kdbx?|ppk|asc|gpg|pgp|ovpn|agekey)(\.(bak|old))?
    | .*\.(tfstate|tfvars)(\.(json|backup))?
    | (.*[._-])?id_(rsa|dsa|ecdsa|ed25519)(_sk)?(\..*)? | .*[._-]rsa | identity
    | (.*[._-])?(secrets?|credentials?|passwords?|passwd)([._-].*)?\.(json|ya?ml|toml|ini|cfg|conf|txt|csv|xml)
    | (.*[._-])?(secrets?|credentials?|passwords?|passwd|htpasswd|shadow)
    | [._](netrc|npmrc|yarnrc(\.yml)?|pypirc|pgpass|my\.cnf|dockercfg|boto|s3cfg|vault-token)
    | service[-_]?account.*\.json | client_secret.*\.json | google-services\.json | auth\.json
    | kubeconfig(\..*)? | .*\.kubeconfig | (.*[._-])?tokens?\.txt
    | (.*[._-])?(deploy|ssh|signing)[._-]?key(\.(txt|json))?
    | env\.(prod(uction)?|stag(e|ing)|local|dev(elopment)?|test)
    | master\.key | wp-config\.php | local\.settings\.json | \..*_history
    """
)
_SECRET_FOLDERS = frozenset({".ssh", ".aws", ".gnupg", ".kube", ".docker", ".azure", ".secrets", "secrets"})


def is_secret(path: str | os.PathLike[str]) -> bool:
    """Whether a file is secret by its name or its folder (``.env``, ``*.pem``, ``id_rsa``, ``credentials``).

    Pass the path inside the workspace, since the folders above it do not count.
    """
    *folders, name = os.fspath(path).replace("\\", "/").split("/")
    return _SECRET.fullmatch(name) is not None or any(folder.lower() in _SECRET_FOLDERS for folder in folders)
