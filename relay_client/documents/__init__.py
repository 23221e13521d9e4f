"""The documents of the road: how the stages meet. One file per document.

Each is a frozen dataclass in a JSON file of the run folder, with its name and a schema version, so that
a stage can be re-run, replaced by the user's own command, carried to another job, or read by a person.
"""
