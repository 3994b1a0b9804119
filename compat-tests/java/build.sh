# Sourced by the scripts of this folder; expects `here`.

# Builds only when the manifest or a source has changed; two runs at once wait for each other.
build() {
  mkdir -p "$here/target"
  exec 9>"$here/target/.lock"
  flock 9
  local sum
  sum="$(cat "$here/pom.xml" "$here"/src/main/java/keylane/compat/*.java | sha256sum)"
  if [[ "$(cat "$here/target/.built" 2>/dev/null)" != "$sum" ]]; then
    rm -rf "$here/lib" "$here/target/classes"
    mvn -q -B -f "$here/pom.xml" compile dependency:copy-dependencies \
      -DoutputDirectory="$here/lib" -DincludeScope=runtime >&2
    echo "$sum" >"$here/target/.built"
  fi
  exec 9>&-
}
