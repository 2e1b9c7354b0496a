/// From the flags of a run to all that it needs: defaults filled in, names looked up,
/// contradictions refused.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
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
  std::int64_t pipeline_parallel_size = 1;
  std::int64_t model_context =
      0;  ///< the longest sequence of the model; 0: it has no limit of its own
  /// Of disaggregated runs: the two pools, of which all that is above describes the prefill one.
  std::int64_t decode_tensor_parallel_size = 1;
  std::string decode_hardware, kv_link;
  KvFacts decode_kv_facts;
  ClusterConfig cluster;
  ClusterParts parts;
  GoodputTargets targets;
  std::optional<double> gpu_hour_cost;  ///< dollars
  KvFacts kv_facts;
  nlohmann::json config;  ///< all that can change the result, and its hash
  std::vector<std::string> warnings;

  /// GPUs of the decode pool; 0 without one.
  std::int64_t decode_gpus() const {
    return cluster.disaggregated ? decode_tensor_parallel_size * cluster.disaggregated->replicas
                                 : 0;
  }
  std::int64_t gpus() const {
    return tensor_parallel_size * pipeline_parallel_size * cluster.replicas + decode_gpus();
  }
};

/// Resolves runs against one set of registries; models and GPUs are read once.
class Resolver {
 public:
  explicit Resolver(const Registries& registries) : registries_(registries) {}

  struct Engine;  ///< cli/resolve_engine.hpp

  /// Throws InputError for unknown names and for settings that contradict each other or do not fit.
  ResolvedRun resolve(const RunSpec& spec, const GoodputTargets& targets);

 private:
  Engine resolve_engine(const RunSpec& spec, const std::string& policy_name,
                        const PolicyEntry& policy, std::vector<std::string>& warnings);
  void resolve_flags(const RunSpec& spec, ResolvedRun& run);
  void resolve_disaggregated(const RunSpec& spec, const PolicyEntry& policy, ResolvedRun& run);
  void resolve_engine_config(const RunSpec& spec, ResolvedRun& run);
  void resolve_common(const RunSpec& spec, ResolvedRun& run);

  const ModelSpec& model(const std::string& name);
  const HardwareSpec& hardware(const std::string& name);

  const Registries& registries_;
  std::map<std::string, ModelSpec> models_;
  std::map<std::string, HardwareSpec> hardware_;
};

/// Enters the format that "auto" turned out to be into the run's configuration, and renews its
/// hash.
void set_trace_format(ResolvedRun& run, const std::string& format);

/// Replaces the arrivals by a process of `rate`, given as `text`, as --request-rate does, and
/// renews the configuration's hash.
void set_request_rate(ResolvedRun& run, const std::string& text, double rate);

/// "ttft:500" and the like. Throws InputError for unknown names, repeated ones and targets that are
/// not positive.
GoodputTargets parse_goodput(const std::vector<std::string>& words);

}  // namespace servesim
