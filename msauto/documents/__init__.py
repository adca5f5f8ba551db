"""Files that people write: YAML to plain data with places and back, and what the models of their keys are made of."""
