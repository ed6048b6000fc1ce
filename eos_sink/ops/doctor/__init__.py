"""`eos-sink doctor`: checks a cluster, a query, this machine and a Spark session.

`facts` asks the cluster, and `spark` runs a job. A check is a function from facts to findings that
asks nothing.
"""
