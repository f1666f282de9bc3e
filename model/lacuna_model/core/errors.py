"""The exception tree of the model side.

LacunaError
├── RequestError        the request cannot be served
├── ModelNotFoundError  no model of that name, or its files are missing
├── WeightsError        a weight file is damaged or of another model
├── DownloadError       a download failed or was cut off
│   └── NotPublishedError   the registry has no such package
├── DeviceError         this machine has no such device
└── CorpusError         a corpus or a shard is damaged (in ``lacuna_model.train.corpus``)

Every message is one line, and tells the user what to do next where that helps.
"""


class LacunaError(Exception):
    """Base of all errors that Lacuna reports to the user, with a message of one line."""


class RequestError(LacunaError):
    """A request that cannot be served, since its values are invalid."""


class ModelNotFoundError(LacunaError):
    """No model of that name is known, or its files are not on this machine."""


class WeightsError(LacunaError):
    """A weight file that is damaged, incomplete or of another model."""


class DownloadError(LacunaError):
    """A download that failed or was cut off; running it again resumes."""


class NotPublishedError(DownloadError):
    """A package, or a version of one, that its registry does not have."""


class DeviceError(LacunaError):
    """The device that was asked for is unknown or not on this machine."""
