"""Recognises files that hold secrets by their names, and secrets in a text: keys of known services, passwords."""

import math
import os
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources

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
    | [._]?(netrc|npmrc|yarnrc(\.ya?ml)?|pypirc|pgpass(\.conf)?|my\.cnf|mylogin\.cnf|dockercfg|dockerconfigjson|boto
        |s3cfg|vault-token|git-credentials|msmtprc|fetchmailrc|muttrc|authinfo|smbcredentials|htdigest|terraformrc
        |gemrc|cargo[._-]credentials|databrickscfg|snowsql|condarc|mc[._-]config|esmtprc|remote-sync\.json|ftpconfig
        |credstash|passwd-s3fs|trc)
    | sftp(-config)?\.json | deployment-config\.json | oauth.*\.json | pip\.conf | google-services\.json
    | (.*[._-])?service[-_]?account.*\.json | (.*[._-])?client[-_]?secrets?.*\.json | googleservice-info\.plist
    | (.*[._-])?(gcp|gcloud|gce|gcs|gke|google|firebase|firebase-adminsdk|aws|azure|adc|sa|iam)
        [._-]?(.*[._-])?(keys?|creds?|credentials?|auth|access)\.(json|csv|ya?ml|txt) | .*firebase-adminsdk.*\.json
    | accesskeys?\.(csv|json|txt) | root[._-]?key\.csv | connectionstrings?\.(config|json)
    | appsettings(\.[\w-]+)?\.json | (user)?secrets\.(json|xml) | web(\.(prod(uction)?|release))?\.config
    | (local|dev|prod)\.settings\.json | application-(prod(uction)?|local|secrets?|staging)\.(properties|ya?ml)
    | kubeconfig([._-].*)? | .*[._-]?kubeconfig | kube[._-]config | admin\.conf
    | (.*[._-])?(api|auth|access|bot|deploy)?[._-]?tokens?(\.txt)?
    | (.*[._-])?(api|auth|deploy|ssh|signing|private|access|encryption|master|license|secret)[._-]?keys?
        (\.(txt|json|ya?ml|csv|enc))?
    | ((.*[._-])?(api|auth|access|bot|deploy|refresh)[._-]?)?tokens?\.json
    | wp-config.*\.php | config\.inc\.php | localsettings\.php | parameters\.ya?ml | database\.ya?ml
    | rclone\.conf | wg\d*\.conf | wireguard.*\.conf | ipsec\.secrets | (chap|pap)-secrets | sssd\.conf
    | wpa_supplicant.*\.conf | ansible[._-]?vault.* | group_vars_vault.* | sops.*\.ya?ml | .*\.sops\.(ya?ml|json)
    | .*[._-]enc\.(ya?ml|json) | .*\.enc | jenkins\.plugins\.publish_over.*\.xml | hudson\.util\.secret
    | (filezilla|recentservers|sitemanager)\.xml | ldap\.(secret|conf)
    | \..*_history | .*\.(bash|zsh|psql|mysql|python|node_repl)_history | cookies\.(sqlite|txt) | (.*[._-])?dump\.sql
    | (gradle|keystore|key|local|sentry)\.properties | \.sentryclirc | key[34]\.db | logins\.json
    | (accesstokens?|azureprofile|stackato|robomongo)\.json | winscp\.ini | nuget\.config | (.*[._-])?auth\.json
    | jupyter_(notebook|server)_config\.json | ejabberd\.(cfg|yml) | proftpdpasswd | ventrilo_srv\.ini
    | express\.ya?ml | dbeaver-data-sources\.xml | terraform\.rc | mnemonic.*\.txt | wallet\.(dat|json)
    | backup[._-]?codes?\.txt | recovery[._-]?(codes?|keys?)\.txt | seed([._-]?phrase)?\.txt
    """
)
_SECRET_FOLDERS = frozenset(
    {
        ".ssh", ".aws", ".gnupg", ".kube", ".docker", ".azure", ".secrets", "secrets", ".gcloud", ".config-gcloud",
        ".oci", ".password-store", ".vault", ".credentials", ".mozilla", ".thunderbird", ".chef", ".irssi", ".weechat",
        ".m2",
    }
)  # fmt: skip


def is_secret(path: str | os.PathLike[str]) -> bool:
    """Whether a file is secret by its name or its folder (``.env``, ``*.pem``, ``id_rsa``, ``credentials``).

    Pass the path inside the workspace, since the folders above it do not count.
    """
    *folders, name = os.fspath(path).replace("\\", "/").split("/")
    return _SECRET.fullmatch(name) is not None or any(folder.lower() in _SECRET_FOLDERS for folder in folders)


# What the rules of gitleaks leave out: beginnings of keys that so many characters, or more, follow.
_BEGINNINGS = {
    "[A-Za-z0-9+/=_-]{20,}": "GOCSPX- ya29. dckr_pat_ dckr_oat_ sb_secret_ hvs. hvb. hvr. whsec_ sq0atp- sq0csp- "
    "sq0idp- glpat- glrt- gldt- glcbt- glptt- glft- glsoat- glagent- gloas- glimt- glffct-",
    "[A-Za-z0-9+/=_-]{28,}": "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ AIza 1//0 HRKU- hf_ rnd_ aio_ CFPAT- figd_ gsk_ r8_ "
    "pplx- nvapi- xai- ntn_ pypi-AgE ATBB AKID glsa_ sntrys_ sntryu_",
    "[0-9a-fA-F]{32,}": "doo_v1_ dop_v1_ dor_v1_ key- squ_ sqp_ sqa_ sbp_ lsv2_pt_ lsv2_sk_ shpat_ shpca_ shppa_ "
    "shpss_ shptka_ shpua_",
}
# ... and words in lower case without one of which a rule finds nothing, and the rule.
_OWN = (
    *(
        (tuple(begun.lower().split()), rf"\b(?:{'|'.join(map(re.escape, begun.split()))}){rest}")
        for rest, begun in _BEGINNINGS.items()
    ),
    (("akia", "asia", "aroa", "abia", "acca"), r"\bA(?:KIA|SIA|ROA|BIA|CCA)[0-9A-Z]{16}\b"),
    (("ac", "sk"), r"\b(?:AC|SK)[0-9a-f]{32}\b"),
    (("@",), r"https?://[0-9a-f]{32}(?::[0-9a-f]{32})?@[\w.-]+(?:/[\w.-]+){0,9}/\d+\b"),
    (("xox", "xapp-"), r"\b(?:xox[abceoprs]|xapp-\d)-[A-Za-z0-9-]{20,}"),
    (("hooks.slack.com",), r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_-]{20,}"),
    (("webhook.office",), r"webhook\.office(?:365)?\.com/webhookb2/[\w@-]{30,}"),
    (("hooks.zapier",), r"hooks\.zapier\.com/hooks/catch/\d+/\w{6,}"),
    (("sk-",), r"(?<![\w-])sk-[A-Za-z0-9_-]{32,}"),
    (("access_token$",), r"access_token\$(?:production|sandbox)\$[0-9a-z]{10,}\$[0-9a-f]{16,}"),
    (("rzp_",), r"\brzp_(?:live|test)_[A-Za-z0-9]{14,}"),
    (("access-",), r"\baccess-(?:production|development|sandbox)-[0-9a-f]{8}-[0-9a-f-]{27}"),
    (("sg.",), r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{32,}"),
    (("-us",), r"\b[0-9a-f]{32}-us\d{1,2}\b"),
    (("_authtoken",), r"(?i)_authToken\s*=\s*[A-Za-z0-9+/=_-]{16,}"),
    (("oy2",), r"\boy2[a-z0-9]{43}\b"),
    (("cio",), r"\bcio[A-Za-z0-9]{32}\b"),
    (("nrak-", "nraa-", "nral-"), r"\bNRA[KAL]-[A-Z0-9]{27}"),
    (("ccipat_",), r"\bCCIPAT_[A-Za-z0-9]{20,}_[0-9a-f]{40}"),
    (("bkua_",), r"\bbkua_[0-9a-z]{40}"),
    (("atatt3",), r"\bATATT3[A-Za-z0-9_=-]{100,}"),
    (("pat",), r"\bpat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    (("secret_",), r"\bsecret_[A-Za-z0-9]{43}\b"),
    (("tskey-",), r"\btskey-[a-z]+-[A-Za-z0-9]+-[A-Za-z0-9]{20,}"),
    (("sk.eyj",), r"\bsk\.eyJ[A-Za-z0-9_-]{30,}\.[A-Za-z0-9_-]{20,}"),
    (("age-secret-key-1",), r"AGE-SECRET-KEY-1[0-9A-Z]{16,}"),
    (("8q~",), r"[A-Za-z0-9_~.-]{3}8Q~[A-Za-z0-9_~.-]{31,34}"),
    (("accountkey=", "accesskey="), r"(?i)\b(?:Account|SharedAccess)Key=[A-Za-z0-9+/]{40,}={0,2}"),
    (("sig=",), r"\bs[epv]=[^&\s]{1,60}&(?:[^&\s]{1,90}&){0,9}sig=[A-Za-z0-9%+/=_-]{40,}"),
    (("eyj",), r"\beyJ[A-Za-z0-9_-]{15,}\.eyJ[A-Za-z0-9_-]{15,}\.[A-Za-z0-9_-]{15,}"),
    ((":aa",), r"\b\d{8,10}:AA[A-Za-z0-9_-]{33}\b"),
    (
        ("$2", "$1$", "$5$", "$6$", "$y$", "$apr1$", "$argon2"),
        r"""\$(?:2[abxy]\$\d\d\$[./A-Za-z0-9]{53}|(?:[156y]|apr1|argon2\w+)\$[^\s'\"]{24,})""",
    ),
    (("app_key",), r"""APP_KEY\s*[:=]\s*[\"']?base64:[A-Za-z0-9+/]{40,}={0,2}"""),
    (("privatekey", "presharedkey"), r"(?im)^\s*(?:Private|Preshared)Key\s*=\s*[A-Za-z0-9+/]{43}="),
    (("bearer ",), r"(?i)\bBearer[ ]+(?=[a-z._~+/-]{0,60}\d)(?=\S{0,60}[a-z])[a-z0-9._~+/-]{24,}"),
    ((".",), r"\b[MNO][A-Za-z\d_-]{23,25}\.[A-Za-z\d_-]{6}\.[A-Za-z\d_-]{27,38}(?![\w-])"),
    (("basic ",), r"(?i)\bBasic[ ]+[A-Za-z0-9+/]{16,}={0,2}(?![\w+/])"),
)
# Keys without a run of characters as below: their beginning is enough.
_MARKS = re.compile(
    r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY(?: BLOCK)?-----|^PuTTY-User-Key-File-\d: |\$ANSIBLE_VAULT;\d"
    r"|^\s{0,9}machine\s{1,9}\S{1,99}\s{1,9}login\s{1,9}\S{1,99}\s{1,9}password\s{1,9}\S{4}",
    re.MULTILINE,
)
# A key is a long run of such characters. Only the lines with one that has a digit or mixed case are looked at.
_RUN = re.compile(r"[A-Za-z0-9_+/=.~$-]{16,}")
_MIXED = re.compile(r"\d|[a-z].{0,200}?[A-Z].{0,200}?[a-z]")
_AROUND = 300


_EXAMPLE = re.compile(r"(?i)example|x{6}|\.{3}|abcdefghijklm")


def holds_known_key(text: str) -> bool:
    """Whether a text holds a key in the form of a known service, or a private key."""
    if _MARKS.search(text):
        return True
    text = "\n".join(_suspicious(text))
    lower = text.lower()
    rules = ((regex, least) for words, regex, least in _rules() if any(word in lower for word in words))
    found = ((match, least) for regex, least in rules for match in _compiled(regex).finditer(text))
    keys = ((next(filter(None, match.groups()), match[0]), least) for match, least in found)
    return any(entropy(key) > least and not _EXAMPLE.search(key) for key, least in keys)


def _suspicious(text: str) -> Iterator[str]:
    """Yield the lines with runs of characters of which keys are made, with the line before; cut if they are long."""
    done = 0
    for run in _RUN.finditer(text):
        if run.end() <= done or not _MIXED.search(run[0]):
            continue
        above = text.rfind("\n", 0, max(text.rfind("\n", 0, run.start()), 0)) + 1
        end = text.find("\n", run.end())
        done = min(len(text) if end < 0 else end, run.end() + _AROUND)
        yield text[max(above, run.start() - _AROUND) : done]


_compiled = cache(re.compile)  # most rules are never needed


@cache
def _rules() -> Sequence[tuple[Sequence[str], str, float]]:
    """Of each rule the words, the regular expression, and how many bits per character what it finds exceeds."""
    data = resources.files("lacuna_model.files").joinpath("gitleaks.toml").read_text("utf-8")
    kept = ((rule["keywords"], rule["regex"], rule.get("entropy", 0.0)) for rule in tomllib.loads(data)["rules"])
    return (*((words, regex, 0.0) for words, regex in _OWN), *kept)


def entropy(text: str) -> float:
    """The Shannon entropy of the characters, in bits per character."""
    counts = Counter(text).values()
    return -sum(count / len(text) * math.log2(count / len(text)) for count in counts)


# The password in a URL. Placeholders in examples are in braces, angles or capitals, or a usual word.
_ADDRESS = re.compile(r"://[^\s:/@'\"]{0,100}:([^\s:/@'\"]{4,200})@[\w.-]")
_PLACEHOLDER = re.compile(
    r"[{<\[(%*]|\$[A-Za-z_{(]|\A[A-Z_]+\Z|(?i:pass(word)?|secret|example|changeme|token|test|user|root|admin)\w{0,8}\Z"
)
_NAMES = (
    r"(?:secret|token|passw(?:or)?d|passphrase|pwd|(?:api|access|private|secret|account|auth|encryption|signing)[_-]?key"
    r"|credential|connection_?string)"
)
# The password of a connection string, such as `Server=db;Password=...;`.
_CONNECTION = re.compile(
    r"(?i)[;\"'][ \t]{0,3}(?:password|pwd|accountkey)[ \t]{0,3}=[ \t]{0,3}([^;\"'\s{}<>$%]{4,200})[ \t]*[;\"']"
)
# A secret in the query of an address, in XML, in a pair of name and value, and as a variable of Docker or a shell.
_OTHER_FORMS = re.compile(
    rf"(?i)[?&]{_NAMES}=([^&\s'\"]{{8,200}})"
    rf"|<[\w.:-]{{0,40}}{_NAMES}>\s{{0,9}}([^<\s]{{8,200}})\s{{0,9}}</"
    rf"|\b(?:key|name)\s{{0,3}}[=:]\s{{0,3}}['\"]?[\w.-]{{0,40}}{_NAMES}['\"]?\s{{1,20}}value\s{{0,3}}[=:]\s{{0,3}}['\"]?([^\s'\"]{{8,200}})"
    rf"|\b(?:ENV|ARG|setx?)[ \t]{{1,9}}[\w.-]{{0,40}}{_NAMES}[ \t=]{{1,9}}['\"]?([^\s'\"]{{8,200}})"
)
# Django's key has characters that no other one has.
_DJANGO = re.compile(r"\bSECRET_KEY[ \t]{0,9}=[ \t]{0,9}[rb]?['\"]([^'\"\n]{30,200})['\"]")
# A line of YAML, INI or a shell's environment that gives a secret an unquoted value; and the start of such a line.
_REST = re.compile(
    rf"(?im){_NAMES}[\w.-]{{0,60}}[ \t]*[:=][ \t]*([A-Za-z0-9+/=_.!@#%^&*~-]{{8,200}})[ \t]*(?:[#;].*)?$"
)
_HEAD = re.compile(r"[ \t]*(?:export[ \t]+)?[\w.-]*")
_HEX = re.compile(r"(?i)[0-9a-f]{24,}")
_LOW_OR_HIGH = re.compile(r"(?=(?:\D*\d){4})(?:[a-z0-9]{20,}|[A-Z0-9]{20,})")
_UUID = re.compile(r"(?i)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_QUOTED = re.compile(r"['\"]([^'\"\s]{8,200})['\"]")
_NAMED = re.compile(rf"(?i){_NAMES}\w*['\"]?\]?\s*(?:[:=]|=>|:=|==){{1,2}}\s*[bru]?$")
_RANDOM = re.compile(r"[A-Za-z0-9+_-]{40,}")
_ALPHABET = re.compile(r"(?i)abcdefgh|12345678")
_ENTROPY_ASSIGNED = 3.7
_ENTROPY_HEX = 3.0
_ENTROPY_RANDOM = 4.6


def holds_credential(text: str) -> bool:
    """Whether a text holds something that looks like a key, a token or a password."""
    named = (m[1] for m in _QUOTED.finditer(text) if _NAMED.search(text, max(0, m.start() - 40), m.start()))
    return (
        holds_known_key(text)
        or any(not _PLACEHOLDER.match(m[1]) for form in (_ADDRESS, _CONNECTION) for m in form.finditer(text))
        or any(entropy(m[1]) > _ENTROPY_ASSIGNED and not re.search(r"[{}<>]", m[1]) for m in _DJANGO.finditer(text))
        or any(_is_password(next(filter(None, m.groups()))) for m in _OTHER_FORMS.finditer(text))
        or any(_is_password(m[1]) and _begins_line(text, m.start()) for m in _REST.finditer(text))
        or any(map(_is_password, named))
        or any(_mixed(m[0]) and entropy(m[0]) > _ENTROPY_RANDOM for m in _RANDOM.finditer(text))
    )


def _begins_line(text: str, at: int) -> bool:
    """Whether only the beginning of a name precedes an offset in its line."""
    return _HEAD.fullmatch(text, text.rfind("\n", 0, at) + 1, at) is not None


def _is_random(text: str) -> bool:
    """Whether a value looks random, by its entropy: letters and digits, or hexadecimal (at most 4 bits per digit)."""
    if _UUID.fullmatch(text):
        return True
    if _HEX.fullmatch(text) and any(map(str.isdigit, text)) and any(map(str.isalpha, text)):
        return entropy(text) > _ENTROPY_HEX
    return (_mixed(text) or _LOW_OR_HIGH.fullmatch(text) is not None) and entropy(text) > _ENTROPY_ASSIGNED


def _is_password(text: str) -> bool:
    """Whether a secret's value is random, or like a password that a person chose: letters, digits and a symbol."""
    if _PLACEHOLDER.match(text):
        return False
    if len(text) >= 16 and _is_random(text):
        return True
    kinds = (str.isalpha, str.isdigit, lambda character: character in "!@#%^&*~")
    return all(any(map(kind, text)) for kind in kinds)


def _mixed(text: str) -> bool:
    """Whether a text has digits and both cases, as random tokens do; long identifiers and paths rarely do."""
    digits = sum(character.isdigit() for character in text)
    cases = any(c.islower() for c in text) and any(c.isupper() for c in text)
    return cases and digits >= 3 and not _ALPHABET.search(text)
