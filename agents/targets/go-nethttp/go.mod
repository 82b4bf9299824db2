module brewbench/go-nethttp

go 1.26
