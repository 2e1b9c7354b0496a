#!/usr/bin/env bash
# The reference study: three policies on every workload, and the highest rate each sustains under a latency target.
#   results/reference-study/update.sh       writes README.md, comparison.txt, report.html, capacity.csv, space.csv and space.html
# beside this script
# Needs the release build and the public traces ($SERVESIM_SHARED/traces or ../shared/traces beside the project).
# Everything is deterministic but the times. SERVESIM_DB keeps the runs, so that an interrupted update goes on.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=results/reference-study
program=${SERVESIM_BINARY:-build/release/sim/cli/simulate}
public=${SERVESIM_SHARED:-../shared}/traces
db=${SERVESIM_DB:-$(mktemp -u)}
target=(--goodput ttft:2000 tpot:50 --attainment 0.95)

traces=(workloads/chat.jsonl workloads/code.jsonl workloads/long-context.jsonl workloads/agentic.jsonl)
for name in azure-llm-2023/AzureLLMInferenceTrace_conv.csv azure-llm-2023/AzureLLMInferenceTrace_code.csv \
  mooncake-fast25/conversation_trace.jsonl; do
  traces+=("$public/$name")
done

# As the traces have them, 3,000 requests each.
"$program" $(printf -- '--trace %s ' "${traces[@]}") --policy static,continuous,chunked --num-prompts 3000 \
  --no-progress --report "$out/report.html" >"$out/comparison.txt"

# The capacity of each policy on each trace. A trace on which no policy meets the target is named instead.
header=
: >"$out/capacity.csv"
unmet=
for trace in "${traces[@]}"; do
  rows=$(mktemp --suffix .csv)
  if reason=$("$program" search --trace "$trace" --policy static,continuous,chunked "${target[@]}" --results-db "$db" \
    --export "$rows" --quiet 2>&1); then
    [[ -n $header ]] || { header=1; echo "trace,$(head -n 1 "$rows")" >>"$out/capacity.csv"; }
    tail -n +2 "$rows" | sed "s|^|$(basename "$trace"),|" >>"$out/capacity.csv"
  else
    unmet+="- ${reason#simulate: }"$'\n'
  fi
  rm -f "$rows"
done

# The best configuration of llama-2-70b on the Azure conversation trace: 216 of them.
conv=$public/azure-llm-2023/AzureLLMInferenceTrace_conv.csv
TIMEFORMAT='%U %S %R'
times=$({ time "$program" search --trace "$conv" --model llama-2-70b --space "$out/space.json" --goodput ttft:500 tpot:50 \
  --gpu-hour-cost 2.5 --export "$out/space.csv" --report "$out/space.html" --no-progress >"$out/space.txt"; } 2>&1)
read -r user system real <<<"$times"

{
  cat <<TEXT
# Reference study

Made by \`results/reference-study/update.sh\`: llama-3.1-8b on one h100-sxm unless a table says otherwise, vLLM's defaults.

- [comparison.txt](comparison.txt): static, continuous and chunked batching on the four shipped workloads and three public traces at
  the traces' own load, the first 3,000 requests of each; paired differences; the verdict. The same with charts: [report.html](report.html).
- [capacity.csv](capacity.csv): the highest request rate of each policy at which 95 % of requests meet \`ttft:2000 tpot:50\`, whole traces.
- [space.csv](space.csv): 216 configurations of llama-2-70b ([space.json](space.json)) on the Azure conversation trace, a capacity search each,
  99 % within \`ttft:500 tpot:50\`. The Pareto front and the best of them: [space.html](space.html).

## Verdict on the policies
\`\`\`text
$(sed -n '/^ Verdict/,$p' "$out/comparison.txt" | tail -n +2)
\`\`\`

## Highest rate, requests/s
| trace | policy | max rate | p99 TTFT ms | p99 TPOT ms |
|---|---|---|---|---|
$(awk -F, 'NR == 1 { for (i = 1; i <= NF; ++i) at[$i] = i; next }
  function figure(name, digits) { return $at[name] == "" ? "-" : sprintf("%.*f", digits, $at[name]) }
  { rate = $at["max_request_rate"]
    printf "| %s | %s | %s | %s | %s |\n", $1, $at["policy"], rate == "" ? $at["status"] : rate,
      figure("p99_ttft_ms", 0), figure("p99_tpot_ms", 1) }' "$out/capacity.csv")
${unmet:+
Not met at any rate:

$unmet}
## The best of 216 configurations
\`\`\`text
$(cat "$out/space.txt")
\`\`\`
This search took $user s of user and $system s of system time, $real s of wall time, on the machine that made this file ($(nproc) cores, shared).
TEXT
} >"$out/README.md"
rm -f "$out/space.txt"
[[ -n ${SERVESIM_DB:-} ]] || rm -f "$db"
