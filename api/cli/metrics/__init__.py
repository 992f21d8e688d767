"""`frontage metrics`: rules and charts for Prometheus and Grafana, from the names of our metrics."""
