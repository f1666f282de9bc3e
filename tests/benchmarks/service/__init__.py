"""A load test of the service, and the service that a measurement has for itself."""
