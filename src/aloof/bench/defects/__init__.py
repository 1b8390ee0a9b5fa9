"""Defects on surfaces and parts: drawn or photographed, with masks, some kinds never labelled."""
