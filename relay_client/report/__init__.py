"""Report: from evidence and job results to a verdict, and the verdict to the relay."""
