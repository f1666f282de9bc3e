"""Recognises files that hold secrets by their names; they are never indexed, quoted or shown."""

import os
import re

_KINDS = r"(json|ya?ml|toml|ini|cfg|conf|config|properties|txt|csv|xml|env|enc|php|plist)"
_SECRET = re.compile(
    rf"""(?xi)
      \.env(rc)? | \.env[._-].* | .*\.env | env\.(prod(uction)?|stag(e|ing)|local|dev(elopment)?|test)
    | .*\.(pem|key|p8|p12|p7b|pfx|pk8|jks|bks|keystore|truststore|kdbx?|ppk|asc|gpg|pgp|ovpn|agekey|age|pkcs12
        |mobileprovision|rdp|psafe3|agilekeychain|keychain|keytab|ccache|kwallet|cscfg|publishsettings
        |pubxml)(\.(bak|old))?
    | .*\.(tfstate|tfvars)(\.(json|backup))?
    | (.*[._-])?id_(rsa|dsa|ecdsa|ed25519)(_sk)?(\..*)? | .*[._-](rsa|ed25519) | identity
    | (.*[._-])?(secrets?|credentials?|creds?|passwords?|passwd|passphrase|vault|htpasswd)([._-].*)?\.{_KINDS}
    | (.*[._-])?(secrets?|credentials?|creds?|passwords?|passwd|htpasswd|shadow)(\.(bak|old|age|enc))?
    | (.*[._-])?vault[._-]?(pass(word)?|token|key)s?(\.txt)?
    | secrets?\.(py|rb|js|ts|exs|nix|h) | credentials\.(py|rb|js|ts) | (local|prod(uction)?|secret)_settings\.py
    | settings[._-](local|prod(uction)?)\.(py|php)
    | [._]?(netrc|npmrc|yarnrc(\.ya?ml)?|pypirc|pgpass(\.conf)?|my\.cnf|mylogin\.cnf|dockercfg|dockerconfigjson
    |boto|s3cfg
        |vault-token|git-credentials|msmtprc|fetchmailrc|muttrc|authinfo|smbcredentials|htdigest|terraformrc|gemrc
        |cargo[._-]credentials|databrickscfg|snowsql|condarc|mc[._-]config|esmtprc|remote-sync\.json|ftpconfig
        |credstash|passwd-s3fs|trc)
    | _netrc | sftp(-config)?\.json | deployment-config\.json | auth\.json | oauth.*\.json | pip\.conf
    | credentials\.tfrc\.json
    | (.*[._-])?service[-_]?account.*\.json | (.*[._-])?client[-_]?secrets?.*\.json | google-services\.json
    | googleservice-info\.plist
    | (.*[._-])?(gcp|gcloud|gce|gcs|gke|google|firebase|firebase-adminsdk|aws|azure|adc|sa|iam)
        [._-]?(.*[._-])?(keys?|creds?|credentials?|auth|access)\.(json|csv|ya?ml|txt) | .*firebase-adminsdk.*\.json
    | application_default_credentials\.json | accesskeys?\.(csv|json|txt) | root[._-]?key\.csv
    | appsettings(\.[\w-]+)?\.json | (user)?secrets\.(json|xml) | web(\.(prod(uction)?|release))?\.config
    | connectionstrings?\.(config|json)
    | (local|dev|prod)\.settings\.json | application-(prod(uction)?|local|secrets?|staging)\.(properties|ya?ml)
    | kubeconfig([._-].*)? | .*[._-]?kubeconfig | kube[._-]config | admin\.conf
    | (.*[._-])?(api|auth|access|bot|deploy)?[._-]?tokens?(\.txt)?
    | (.*[._-])?(api|auth|deploy|ssh|signing|private|access|encryption|master|license|secret)[._-]?keys?(\.(txt
    |json|ya?ml|csv|enc))?
    | ((.*[._-])?(api|auth|access|bot|deploy|refresh)[._-]?)?tokens?\.json
    | master\.key | wp-config.*\.php | config\.inc\.php | localsettings\.php | parameters\.ya?ml | database\.ya?ml
    | rclone\.conf | wg\d*\.conf | wireguard.*\.conf | ipsec\.secrets | (chap|pap)-secrets
    | wpa_supplicant.*\.conf | sssd\.conf
    | ansible[._-]?vault.* | group_vars_vault.* | sops.*\.ya?ml | .*\.sops\.(ya?ml|json) | .*[._-]enc\.(ya?ml|json)
    | jenkins\.plugins\.publish_over.*\.xml | hudson\.util\.secret | filezilla\.xml | recentservers\.xml
    | sitemanager\.xml
    | krb5\.keytab | ldap\.(secret|conf) | \..*_history | .*\.(bash|zsh|psql|mysql|python|node_repl)_history
    | gradle\.properties | cookies\.(sqlite|txt) | (.*[._-])?dump\.sql
    | keystore\.properties | key\.properties | local\.properties | sentry\.properties | \.sentryclirc
    | accesstokens?\.json | azureprofile\.json | winscp\.ini | nuget\.config | key[34]\.db | logins\.json
    | (.*[._-])?auth\.json | stackato\.json | jupyter_(notebook|server)_config\.json | .*\.enc
    | ejabberd\.(cfg|yml)
    | robomongo\.json | proftpdpasswd | ventrilo_srv\.ini | express\.ya?ml | dbeaver-data-sources\.xml | terraform\.rc
    | backup[._-]?codes?\.txt | recovery[._-]?(codes?|keys?)\.txt | seed([._-]?phrase)?\.txt | wallet\.(dat|json)
    | mnemonic.*\.txt
    """
)
_SECRET_FOLDERS = frozenset(
    {
        ".ssh", ".aws", ".gnupg", ".kube", ".docker", ".azure", ".secrets", "secrets", ".gcloud", ".config-gcloud",
        ".oci",
        ".password-store", ".vault", ".credentials", ".mozilla", ".thunderbird", ".chef", ".irssi", ".weechat", ".m2",
    }
)  # fmt: skip


def is_secret(path: str | os.PathLike[str]) -> bool:
    """Whether a file is secret by its name or its folder (``.env``, ``*.pem``, ``id_rsa``, ``credentials``).

    Pass the path inside the workspace, since the folders above it do not count.
    """
    *folders, name = os.fspath(path).replace("\\", "/").split("/")
    return _SECRET.fullmatch(name) is not None or any(folder.lower() in _SECRET_FOLDERS for folder in folders)
