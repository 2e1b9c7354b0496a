#include "cli/topics.hpp"

namespace servesim {
namespace {

Topic traces() {
  return {"traces",
          "what can be replayed, and how formats are told",
          "A trace is a file of requests: arrival, input tokens, output tokens; more where the\n"
          "format has it (hash ids of prefixes, sessions, priorities). The format is told by the\n"
          "content, as is compression (.gz, .zst, .xz); --trace-format, --time-unit and\n"
          "--hash-block-size override it. `simulate list formats` names the formats.\n"
          "--trace may be given again; --trace-set DIR takes every trace of a folder.",
          {"simulate --trace workloads/chat.jsonl",
           "simulate --trace-set workloads --policy continuous,chunked --num-prompts 300",
           "simulate generate --spec code --num-prompts 100 --seed 7"}};
}

Topic load() {
  return {
      "load",
      "other arrivals, another speed, fewer requests",
      "Requests arrive when the trace says, unless --request-rate R replaces the arrivals by a\n"
      "seeded Poisson process (inf: all at once; --burstiness for other gamma processes), or\n"
      "--time-scale X stretches them. --max-concurrency N lets the client keep at most N\n"
      "requests in flight; latencies then count from the moment a request is sent.\n"
      "--num-prompts N takes the first N requests.",
      {"simulate --trace workloads/chat.jsonl --request-rate 2,8,32 --num-prompts 500",
       "simulate --trace workloads/chat.jsonl --max-concurrency 64 --num-prompts 500"}};
}

Topic policies() {
  return {"policies",
          "how a step's batch is chosen",
          "static         takes a batch, decodes until its last sequence has finished, repeats\n"
          "continuous     sequences join and leave at every step, prompts are prefilled whole\n"
          "chunked        decodes first, the rest of the token budget goes to prompt chunks\n"
          "disaggregated  prefill and decode on different replicas (`simulate help clusters`)\n"
          "continuous and chunked follow vLLM's V1 scheduler step for step; both pools of\n"
          "disaggregated run chunked. --max-num-seqs and --max-num-batched-tokens bound a step;\n"
          "flags that contradict a policy are refused.",
          {"simulate --trace workloads/chat.jsonl --policy static,continuous,chunked "
           "--num-prompts 500",
           "simulate --trace workloads/code.jsonl --max-num-batched-tokens 2048,8192 "
           "--num-prompts 300"}};
}

Topic clusters() {
  return {
      "clusters",
      "routers, prefill and decode apart, faults",
      "--replicas N puts N equal engines behind a --router (`simulate list routers`).\n"
      "--policy disaggregated has a pool of --prefill-replicas and one of --decode-replicas. The\n"
      "KV of each prompt crosses --kv-link: a name from `simulate list links` or\n"
      "`simulate list topologies`, or a file. --kv-transfer pulls it after prefill or pushes it\n"
      "layer by layer; --prefill and --decode change engine flags of one pool. --scenario FILE\n"
      "takes replicas and links down and up again; --max-queue bounds how many requests wait at a\n"
      "replica, --request-timeout how long a client waits.",
      {"simulate --trace workloads/chat.jsonl --replicas 4 --router round-robin,prefix-aware "
       "--num-prompts 500",
       "simulate --trace workloads/chat.jsonl --policy disaggregated --prefill-replicas 2 "
       "--kv-link ib-ndr400,100gbe --num-prompts 300"}};
}

Topic memory() {
  return {
      "memory",
      "the KV pool, allocators, pressure, tiers",
      "What --gpu-memory-utilization leaves beside weights and activations is the KV pool, in\n"
      "blocks of --block-size tokens; --num-gpu-blocks-override sets their number. --kv paged\n"
      "gives out blocks, contiguous:max, :pow2 and :oracle a region per request. When there is\n"
      "no block for a sequence's next token, --preemption-mode recompute frees its KV and\n"
      "computes it again, swap copies it to --swap-space and back; stall admits only what fits to\n"
      "its end. --kv-offload cpu:64GiB,nvme:1TiB keeps what the prefix cache evicts.\n"
      "--kv-cache-dtype and --num-kv-heads make the KV smaller. `simulate size` says what fits.",
      {"simulate --trace workloads/chat.jsonl --num-prompts 500 --max-model-len 16384 "
       "--kv paged,contiguous:oracle,contiguous:max",
       "simulate --trace workloads/chat.jsonl --num-prompts 1000 --request-rate inf "
       "--num-gpu-blocks-override 6000 --preemption-mode recompute,swap,stall",
       "simulate size --model llama-3-8b --context 8192 --batch 32,64 --kv-cache-dtype auto,fp8"}};
}

Topic comparing() {
  return {
      "comparing",
      "lists of values, paired differences, the verdict",
      "Every flag of a run takes a list; the runs are the product. Settings of the engine make\n"
      "alternatives, traces and load flags make workloads. Two alternatives or more are\n"
      "compared: a table per metric (one row per run where there is one workload only), the\n"
      "differences of the same requests under two alternatives, and a verdict that says who\n"
      "wins, by how much and where it flips. Less than 0.5 % apart counts as level. --json has\n"
      "all of it under `comparison`.",
      {"simulate --trace workloads/chat.jsonl --trace workloads/code.jsonl "
       "--policy static,continuous,chunked --num-prompts 500",
       "simulate --trace workloads/chat.jsonl --policy continuous,chunked "
       "--request-rate 4,16,64 --num-prompts 500"}};
}

Topic slo() {
  return {"slo",
          "latency targets, goodput, capacity",
          "--goodput ttft:500 tpot:50 e2el:10000 sets targets in milliseconds; a request is good\n"
          "when it meets all that are set. `simulate` reports good requests per second;\n"
          "`simulate search` finds the highest request rate at which --attainment (0.99) of the\n"
          "requests are good, for one configuration or for each of a space, and the best of them;\n"
          "its --report shows the Pareto front.",
          {"simulate --trace workloads/chat.jsonl --goodput ttft:500 tpot:50 --num-prompts 500",
           "simulate search --trace workloads/chat.jsonl --goodput ttft:500 tpot:50 "
           "--num-prompts 1000",
           "simulate search --trace workloads/chat.jsonl --goodput ttft:500 tpot:50 "
           "--num-prompts 500 --max-num-seqs 32,64,128 --policy continuous,chunked"}};
}

Topic outputs() {
  return {
      "outputs",
      "tables, JSON, records, logs, reports",
      "Results go to standard output, talk and progress to standard error. --json FILE writes\n"
      "everything (- is stdout, instead of the table), --requests FILE a row per request,\n"
      "--schedule-log FILE every decision of the scheduler, --report FILE.html all runs in one\n"
      "page with charts, --timeline FILE the steps and requests of one run for Perfetto. Files\n"
      "appear whole or not at all.\n"
      "Exit codes: 0 done, 2 bad usage, input or configuration, 1 our fault, 130 interrupted.\n"
      "Colour only on a terminal, never when NO_COLOR is set.",
      {"simulate --trace workloads/chat.jsonl --num-prompts 100 --json -",
       "simulate --trace workloads/chat.jsonl --num-prompts 100 --report report.html "
       "--timeline timeline.json.gz"}};
}

Topic cost() {
  return {"cost",
          "dollars per million tokens",
          "--gpu-hour-cost X is the price of a GPU and hour in dollars, or NAME:X for each\n"
          "--hardware. A run then says what a million output tokens cost, for its whole duration,\n"
          "idle time included; a search can rank by --objective goodput-per-dollar.",
          {"simulate --trace workloads/chat.jsonl --num-prompts 500 --gpu-hour-cost 2.5",
           "simulate --trace workloads/chat.jsonl --num-prompts 300 "
           "--hardware h100-sxm,a100-sxm-80g --gpu-hour-cost h100-sxm:2.5 a100-sxm-80g:1.3"}};
}

}  // namespace

const std::vector<Topic>& topics() {
  static const std::vector<Topic> kAll{traces(),    load(), policies(), clusters(), memory(),
                                       comparing(), slo(),  outputs(),  cost()};
  return kAll;
}

}  // namespace servesim
