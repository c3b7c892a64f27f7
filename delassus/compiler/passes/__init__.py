"""What is done to a program before it is written."""
