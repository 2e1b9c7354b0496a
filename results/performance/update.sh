#!/usr/bin/env bash
# Measures this tree on this machine and writes results/performance/README.md. Needs the public traces (SERVESIM_SHARED
# or ../shared) and valgrind; BUILD names a configured release build (build/release).
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${BUILD:-build/release}
shared=${SERVESIM_SHARED:-../shared}
ninja -C "$build" servesim_bench simulate >/dev/null
out=$(mktemp)
trap 'rm -f "$out" "$out.profile"' EXIT

profile() {  # ARGS: the functions that take over 3 % of the instructions of a run
  valgrind --tool=callgrind --callgrind-out-file="$out.profile" "$build/sim/cli/simulate" "$@" --threads 1 --quiet \
    --json /dev/null >/dev/null 2>&1
  callgrind_annotate --threshold=100 "$out.profile" | grep -E '^ *[0-9,]+ \(' |
    sed -E 's/ \[[^]]*\]$//; s/^ *([0-9,]+) \( *[0-9.]+%\) +[^:]*:/\1 /; s/servesim:://g; s/\(anonymous namespace\):://g; s/\(.*//' |
    awk '{ gsub(",", "", $1); n = $1; $1 = ""; if ($0 ~ /[a-z]/) { all += n; by[$0] += n } }
         END { for (f in by) if (by[f] > 0.03 * all) printf "%5.1f %% %s\n", 100 * by[f] / all, f }' | sort -rn
}

{
  echo "# Performance"
  echo
  echo "Written by \`results/performance/update.sh\` on $(date -u +%Y-%m-%d) at $(git rev-parse --short HEAD)," \
    "$(c++ --version | head -1), $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), one core of $(nproc)."
  echo "Alternatives run in turn and the fastest round of each counts, so ratios hold on a busy machine where times do"
  echo "not. \`instructions.txt\` has the counts that \`.ci/performance\` compares with those of the merge base."
  "$build/tests/bench/servesim_bench"
  echo
  echo "## What dominates"
  echo
  echo "Instructions by function (callgrind), those over 3 %. With a linear step time no function stands out: the event loop,"
  echo "planning and taking stretches of steps share the work, all of it per request. Its code nearly fills the first-level"
  echo "instruction cache, so what most requests do not run through is kept out of its way (\`sim/core/branch_hints.hpp\`): that"
  echo "is worth nearly a tenth of the time. With the roofline, pricing steps with prompt chunks and pricing each decode step"
  echo "come on top."
  echo
  echo "Azure conversation trace, linear step time, prefix caching off:"
  echo
  echo '```'
  profile --trace "$shared/traces/azure-llm-2023/AzureLLMInferenceTrace_conv.csv" \
    --step-time linear:base_us=5000,per_token_us=30 --no-enable-prefix-caching
  echo '```'
  echo
  echo "The same with the roofline and prefix caching:"
  echo
  echo '```'
  profile --trace "$shared/traces/azure-llm-2023/AzureLLMInferenceTrace_conv.csv"
  echo '```'
} >"$out"
mv "$out" results/performance/README.md
chmod 644 results/performance/README.md
