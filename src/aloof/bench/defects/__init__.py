"""Defects on surfaces and parts, drawn and photographed, with masks; some kinds unlabelled."""
