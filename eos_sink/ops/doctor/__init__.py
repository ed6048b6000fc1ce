"""`eos-sink doctor`: checks a cluster, a query, this machine and a Spark session.

`checks` and `spark` have the tables of checks. A check is a function from facts to findings;
`facts` asks the cluster for each when the first check needs it, and `spark` runs a job.
"""
