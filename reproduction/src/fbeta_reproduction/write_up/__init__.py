"""The report: claims with their verdicts, tables and figures, as Markdown, as a page, and in the terminal."""
