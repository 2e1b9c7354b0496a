#include "cli/headline.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "report/result_table.hpp"

namespace servesim {
namespace {

std::string gpus_text(const ResolvedRun& run) {
  if (run.hardware == "none") return "linear step time";
  std::string text = fmt::format("{} x {}", run.tensor_parallel_size, run.hardware);
  if (run.tensor_parallel_size > 1) text += fmt::format(" (TP {})", run.tensor_parallel_size);
  return text;
}

std::string replicas_text(const ResolvedRun& run) {
  return run.cluster.replicas > 1 ? fmt::format("{} replicas", run.cluster.replicas)
                                  : std::string();
}

std::string kv_text(const ResolvedRun& run) {
  return fmt::format("{} KV, {} blocks of {} tokens", run.kv,
                     with_thousands(run.kv_facts.num_gpu_blocks), run.kv_facts.block_size);
}

std::string limits_text(const ResolvedRun& run) {
  const SchedulerConfig& s = run.cluster.scheduler;
  return fmt::format("max_num_seqs {}, max_num_batched_tokens {}", with_thousands(s.max_num_seqs),
                     with_thousands(s.max_num_batched_tokens));
}

std::string model_text(const ResolvedRun& run) {
  return run.model == "none" ? std::string() : run.model;
}

}  // namespace

std::string headline(const std::vector<ResolvedRun>& runs) {
  std::string line;
  for (const auto part : {model_text, gpus_text, replicas_text, kv_text, limits_text}) {
    const std::string first = part(runs.front());
    const bool common = std::all_of(runs.begin(), runs.end(),
                                    [&](const ResolvedRun& run) { return part(run) == first; });
    if (!common || first.empty()) continue;
    line += fmt::format("{}{}", line.empty() ? "" : " · ", first);
  }
  return line;
}

}  // namespace servesim
