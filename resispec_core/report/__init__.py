"""Plots and pages made from results. Needs the extra `plot`; imports nothing heavy until used."""
