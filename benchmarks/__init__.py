"""Speed measures: ratios against a bound measured in the same run; the last line is JSON."""
