"""Small widgets that know the theme and nothing of traces."""
