#!/bin/sh
# Runs the commands before each <!-- table:NAME --> line of README.md and puts their output after it.
set -eu
cd "$(dirname "$0")/.."
./run build
awk '
  function run(command,   line, started) {
    print "```text"
    while ((command | getline line) > 0) {
      if (line != "") started = 1
      if (started) print line
    }
    close(command)
    print "```"
    print "<!-- end -->"
  }
  # What an earlier call has put there goes.
  after && /^```text$/ { skipping = 1 }
  { after = 0 }
  skipping { if ($0 == "<!-- end -->") skipping = 0; next }
  { print }
  /^\.\/run simulate/ { command = $0 }
  /^<!-- table:/ {
    run(command ~ /simulate size/ ? command : command " --no-progress")
    after = 1
  }
' README.md >README.md.new
mv README.md.new README.md
