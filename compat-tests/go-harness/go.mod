module keylane.test/harness

go 1.26
