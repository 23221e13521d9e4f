"""The place we run in: its context, its commands, processes, git, and the options of a verb."""
