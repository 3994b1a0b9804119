# Sourced by the scripts of this folder: steps with a common deadline, and their counts.
# Expects `minutes_max`. Ends with "N passed, N failed" only if every step ran to its own count.

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
cd "$root"
output="$(mktemp)"
trap 'rm -f "$output"' EXIT
deadline=$((SECONDS + minutes_max * 60))
passed=0
failed=0
ran=()

# need PROGRAM...: a check that cannot run is a failure, not something to leave out.
need() {
  local program missing=()
  for program in "$@"; do
    command -v "$program" >/dev/null || missing+=("$program")
  done
  if ((${#missing[@]} > 0)); then
    echo "missing: ${missing[*]}" >&2
    exit 1
  fi
  if (($(node --print 'process.versions.node.split(".")[0]') < 20)); then
    echo "Node 20 or newer is needed, this is $(node --version)" >&2
    exit 1
  fi
}

# step NAME COMMAND...: runs it, and ends everything if it fails without counted failures.
step() {
  local name="$1" status=0 began=$SECONDS left=$((deadline - SECONDS)) failed_before=$failed
  shift
  echo "=== $name: $*"
  if ((left <= 0)); then give_up "$name" "no time left"; fi
  timeout --kill-after=30 "$left" "$@" 2>&1 | tee "$output" || status=$?
  count
  if ((status == 124 || status == 137)); then give_up "$name" "took too long"; fi
  if ((status != 0 && failed == failed_before)); then give_up "$name" "exit status $status"; fi
  ran+=("$name: $((SECONDS - began)) s, exit status $status")
}

# Adds up what the test runner of Node ("# pass 7") and the suites ("7 passed, 0 failed") say.
count() {
  local line
  while read -r line; do
    if [[ "$line" =~ ^(#|ℹ)\ pass\ ([0-9]+)$ ]]; then
      passed=$((passed + BASH_REMATCH[2]))
    elif [[ "$line" =~ ^(#|ℹ)\ (fail|cancelled)\ ([0-9]+)$ ]]; then
      failed=$((failed + BASH_REMATCH[3]))
    elif [[ "$line" =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
      passed=$((passed + BASH_REMATCH[1]))
      failed=$((failed + BASH_REMATCH[2]))
    fi
  done <"$output"
}

give_up() {
  echo "FAILED: $1: $2" >&2
  exit 1
}

# summary: what ran, and the sum as the last line.
summary() {
  echo "=== what ran"
  printf '%s\n' "${ran[@]}"
  echo "$passed passed, $failed failed"
  ((failed == 0 && passed > 0))
}
