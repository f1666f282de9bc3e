"""How Ray Serve is set in its processes: environment variables, which it reads when it is imported."""

import os

# HAProxy passes connections on to the ingresses: Ray Serve's own proxy is a process of Python through which every
# message of a websocket goes. Router and code of a replica share one event loop, which saves hops between threads.
# HAProxy's port for Prometheus would be open to every machine.
SERVE = {
    "RAY_SERVE_ENABLE_HA_PROXY": "1",
    "RAY_SERVE_HAPROXY_METRICS_ENABLED": "0",
    "RAY_SERVE_RUN_ROUTER_IN_SEPARATE_LOOP": "0",
    "RAY_SERVE_RUN_USER_CODE_IN_SEPARATE_THREAD": "0",
}


def serve_environment() -> dict[str, str]:
    """Return the variables, with the values that this process has where it has them."""
    return {name: os.environ.get(name, value) for name, value in SERVE.items()}


def replica_environment() -> dict[str, str]:
    """Return the variables of a replica.

    Whether there is HAProxy is the cluster's choice: a replica does as the process does that deploys it.
    """
    return {name: value for name, value in serve_environment().items() if "HA" not in name or name in os.environ}
