"""What is written for people and for other programs out of analyses."""
