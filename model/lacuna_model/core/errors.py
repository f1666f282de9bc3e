"""The exception tree of the model side.

LacunaError
├── RequestError        the request cannot be served as it stands
├── ModelNotFoundError  no model of that name, or its files are not here
├── WeightsError        a weight file is damaged or of another model
├── DownloadError       a download failed or was cut off
│   └── NotPublishedError   the registry has no such package
├── DeviceError         the device asked for is not here
└── CorpusError         a corpus or a shard is damaged (in ``lacuna_model.train.corpus``)

Every message is one line that says what to do next where there is something to do.
"""


class LacunaError(Exception):
    """Anything Lacuna refuses, with one clear line for the user."""


class RequestError(LacunaError):
    """A request that cannot be served as it stands."""


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
