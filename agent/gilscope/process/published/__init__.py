"""What a process publishes for readers outside of it, as OpenTelemetry has agreed upon."""
