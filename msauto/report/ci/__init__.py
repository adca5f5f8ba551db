"""Results and problems in the forms that CI systems read."""
