"""The parts of the timeline view: arrangement and layout of tracks, painting, gestures, panels."""
