"""Doctor: say before the first run why results would not show."""
