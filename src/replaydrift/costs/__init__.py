"""Costs: what capture, replay, padding and bucketing cost, measured in blocks; nothing in here needs torch."""
