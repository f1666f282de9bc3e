"""The HTTP routes of the service: completions in the formats of other services, health, metrics and pages."""
