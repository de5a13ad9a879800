"""Reports: results of jobs as single HTML files that need no network.

Plots are Vega-Lite's, described with Altair; the scripts that draw them stand in the file.  Below
each plot are its numbers.
"""
