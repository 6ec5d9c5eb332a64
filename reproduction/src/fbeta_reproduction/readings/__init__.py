"""The loss of each run: as published, as other readings of the text would have it, and with a remedy."""
