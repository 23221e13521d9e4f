"""The dashboard: what callbacks become (`ingestion`), how they are asked for (`queries`), how they look (`pages`)."""
