#include "cli/headline.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "report/result_table.hpp"

namespace servesim {
namespace {

std::string engine_text(const std::string& hardware, std::int64_t tensor_parallel,
                        std::int64_t pipeline_parallel = 1) {
  const std::string text = fmt::format("{} x {}", tensor_parallel * pipeline_parallel, hardware);
  if (pipeline_parallel > 1) {
    return fmt::format("{} (TP {}, PP {})", text, tensor_parallel, pipeline_parallel);
  }
  return tensor_parallel > 1 ? fmt::format("{} (TP {})", text, tensor_parallel) : text;
}

std::string gpus_text(const ResolvedRun& run) {
  if (run.hardware == "none") return "linear step time";
  if (!run.cluster.disaggregated) {
    return engine_text(run.hardware, run.tensor_parallel_size, run.pipeline_parallel_size);
  }
  return fmt::format(
      "prefill on {} of {}, decode on {} of {}, KV over {}", run.cluster.replicas,
      engine_text(run.hardware, run.tensor_parallel_size), run.cluster.disaggregated->replicas,
      engine_text(run.decode_hardware, run.decode_tensor_parallel_size), run.kv_link);
}

std::string replicas_text(const ResolvedRun& run) {
  return run.cluster.replicas > 1 && !run.cluster.disaggregated
             ? fmt::format("{} replicas", run.cluster.replicas)
             : std::string();
}

std::string kv_text(const ResolvedRun& run) {
  const KvFacts& kv = run.cluster.disaggregated ? run.decode_kv_facts : run.kv_facts;
  return fmt::format("{} KV, {} blocks of {} tokens", run.kv, with_thousands(kv.num_gpu_blocks),
                     kv.block_size);
}

std::string limits_text(const ResolvedRun& run) {
  const SchedulerConfig& s = run.cluster.scheduler;
  if (run.cluster.disaggregated) {
    const SchedulerConfig& d = run.cluster.disaggregated->scheduler;
    if (d.max_num_seqs != s.max_num_seqs || d.max_num_batched_tokens != s.max_num_batched_tokens) {
      return {};
    }
  }
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
