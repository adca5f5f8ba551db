"""Keep secrets out of everything that is shown or kept: taint, detection, redaction, tokens."""
