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
          "static      takes a batch, decodes until its last sequence has finished, repeats\n"
          "continuous  sequences join and leave at every step, prompts are prefilled whole\n"
          "chunked     decodes first, the rest of the token budget goes to prompt chunks\n"
          "The last two follow vLLM's V1 scheduler step for step. --max-num-seqs and\n"
          "--max-num-batched-tokens bound a step; flags that contradict a policy are refused.",
          {"simulate --trace workloads/chat.jsonl --policy static,continuous,chunked "
           "--num-prompts 500",
           "simulate --trace workloads/code.jsonl --max-num-batched-tokens 2048,8192 "
           "--num-prompts 300"}};
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

Topic search() {
  return {"slo",
          "latency targets, goodput, capacity",
          "--goodput ttft:500 tpot:50 e2el:10000 sets targets in milliseconds; a request is good\n"
          "when it meets all that are set. `simulate` reports good requests per second;\n"
          "`simulate search` finds the highest request rate at which --attainment (0.99) of the\n"
          "requests are good, for one configuration or for each of a space, and the best of them.",
          {"simulate --trace workloads/chat.jsonl --goodput ttft:500 tpot:50 --num-prompts 500",
           "simulate search --trace workloads/chat.jsonl --goodput ttft:500 tpot:50 "
           "--num-prompts 1000",
           "simulate search --trace workloads/chat.jsonl --goodput ttft:500 tpot:50 "
           "--num-prompts 500 --max-num-seqs 32,64,128 --policy continuous,chunked"}};
}

Topic outputs() {
  return {"outputs",
          "tables, JSON, records, logs",
          "Results go to standard output, talk and progress to standard error. --json FILE writes\n"
          "everything (- is stdout, instead of the table), --requests FILE a row per request,\n"
          "--schedule-log FILE every decision of the scheduler. Files appear whole or not at all.\n"
          "Exit codes: 0 done, 2 bad usage, input or configuration, 1 our fault, 130 interrupted.\n"
          "Colour only on a terminal, never when NO_COLOR is set.",
          {"simulate --trace workloads/chat.jsonl --num-prompts 100 --json -"}};
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
  static const std::vector<Topic> kAll{traces(), load(),    policies(), comparing(),
                                       search(), outputs(), cost()};
  return kAll;
}

}  // namespace servesim
