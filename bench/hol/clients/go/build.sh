#!/usr/bin/env bash
# Builds bin/franz-go and bin/sarama and prints their folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
go build -o bin/ ./franz-go ./sarama >&2
echo "$PWD/bin"
