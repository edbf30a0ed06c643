"""A full report as files: Markdown, and one HTML page with plots that needs nothing else."""
