"""``aloof bench``: the paper's tables and figures, run here."""
