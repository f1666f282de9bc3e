"""The exception tree of the model side.

LacunaError
├── RequestError        the request has an invalid value
├── ModelNotFoundError  no model has this name, or its files are missing
├── WeightsError        a weight file is damaged or belongs to another model
│   └── OtherKindError      our own layers do not have what the model is made of; another reader may
├── DownloadError       a download failed or was interrupted
│   └── NotPublishedError   the registry does not have the package
├── DeviceError         this machine does not have the device
└── CorpusError         a corpus or a shard is damaged (in ``training.packages``)

Every message is one line. Where the user can do something about the error, the message says what.
"""

import traceback


class LacunaError(Exception):
    """Base of all errors that Lacuna reports to the user, with a message of one line."""


class RequestError(LacunaError):
    """A request has an invalid value."""


class ModelNotFoundError(LacunaError):
    """No known model has this name, or its files are not on this machine."""


class WeightsError(LacunaError):
    """A weight file is damaged, incomplete or belongs to another model."""


class OtherKindError(WeightsError):
    """A file of a kind that our own layers do not read: another architecture, quantisation or tokenizer."""


class DownloadError(LacunaError):
    """A download failed or was interrupted; running it again resumes it."""


class NotPublishedError(DownloadError):
    """The registry does not have a package, or not the requested version."""


class DeviceError(LacunaError):
    """The requested device is unknown or not on this machine."""


def traced(error: BaseException) -> str:
    """Where an error was raised, and its class; not its message, which may quote code or name files."""
    return "".join(traceback.format_tb(error.__traceback__)) + type(error).__name__
