/// From the flags of a run to all that it needs: defaults filled in, names looked up,
/// contradictions refused.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/run_spec.hpp"
#include "cluster/simulation.hpp"
#include "hardware/hardware_spec.hpp"
#include "model/model_spec.hpp"
#include "registry/registries.hpp"
#include "report/metrics.hpp"
#include "report/run_result.hpp"
#include "workload/load.hpp"
#include "workload/trace_options.hpp"

namespace servesim {

/// A run with every choice made.
struct ResolvedRun {
  std::string trace_path;
  TraceOptions trace;
  LoadOptions load;
  std::string policy, kv, model, hardware;
  std::int64_t tensor_parallel_size = 1;
  ClusterConfig cluster;
  ClusterParts parts;
  GoodputTargets targets;
  KvFacts kv_facts;
  nlohmann::json config;  ///< all that can change the result, and its hash
  std::vector<std::string> warnings;
};

/// Resolves runs against one set of registries; models and GPUs are read once.
class Resolver {
 public:
  explicit Resolver(const Registries& registries) : registries_(registries) {}

  /// Throws InputError for unknown names and for settings that contradict each other or do not fit.
  ResolvedRun resolve(const RunSpec& spec, const GoodputTargets& targets);

 private:
  void resolve_flags(const RunSpec& spec, ResolvedRun& run);
  void resolve_engine_config(const RunSpec& spec, ResolvedRun& run);
  void resolve_common(const RunSpec& spec, ResolvedRun& run);
  void resolve_layer_groups(const CostInputs& inputs, ResolvedRun& run);
  void resolve_blocks(const RunSpec& spec, const CostInputs& inputs, ResolvedRun& run);
  void resolve_moves(const RunSpec& spec, const CostInputs& inputs, const std::string& step_time,
                     ResolvedRun& run);
  void resolve_offload(const RunSpec& spec, const CostInputs& inputs, const std::string& step_time,
                       ResolvedRun& run);

  /// A spec and the hash of the file it came from, which names it beyond doubt.
  template <typename Spec>
  struct Loaded {
    Spec spec;
    std::string hash;
  };
  const Loaded<ModelSpec>& model(const std::string& name);
  const Loaded<HardwareSpec>& hardware(const std::string& name);

  const Registries& registries_;
  std::map<std::string, Loaded<ModelSpec>> models_;
  std::map<std::string, Loaded<HardwareSpec>> hardware_;
};

/// Enters the format that "auto" turned out to be into the run's configuration, and renews its
/// hash.
void set_trace_format(ResolvedRun& run, const std::string& format);

/// "ttft:500" and the like. Throws InputError for unknown names, repeated ones and targets that are
/// not positive.
GoodputTargets parse_goodput(const std::vector<std::string>& words);

}  // namespace servesim
