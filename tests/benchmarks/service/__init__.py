"""Load tests of the service, on this machine and on a cluster of nodes here, and the service of a measurement."""
