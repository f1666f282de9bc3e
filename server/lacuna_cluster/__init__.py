"""The service of a team, on Ray Serve: an ingress that is our web application, and engine replicas that hold a model.

``serve run lacuna_cluster:app`` deploys it, with the keys of ``ClusterArgs``. Of ``lacuna_server`` nothing imports this
package: ``lacuna cluster`` and ``lacuna serve --cluster`` load it by its name. Only some modules import Ray, so that
the others can be used without it.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(name)
    from lacuna_cluster.deploying import app

    return app
