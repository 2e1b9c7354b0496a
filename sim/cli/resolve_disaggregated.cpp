// The two pools of --policy disaggregated, and what lies between them.
#include <fmt/format.h>

#include <algorithm>

#include "cli/axes.hpp"
#include "cli/resolve_engine.hpp"
#include "core/error.hpp"
#include "net/routes.hpp"
#include "net/topology_loader.hpp"

namespace servesim {
namespace {

constexpr std::string_view kDefaultLink = "ib-ndr400";

/// What both pools must have alike, or what is no setting of an engine.
const std::vector<std::string> kNotOfAPool{"policy",         "kv",
                                           "model",          "block-size",
                                           "kv-cache-dtype", "dtype",
                                           "num-kv-heads",   "pipeline-parallel-size",
                                           "step-time",      "prefill",
                                           "decode",         "kv-link",
                                           "kv-transfer",    "prefill-replicas",
                                           "decode-replicas"};

std::vector<std::string> pool_keys() {
  std::vector<std::string> keys;
  for (const Axis& axis : axes()) {
    if (axis.scope != Axis::Scope::kEngine) continue;
    if (std::find(kNotOfAPool.begin(), kNotOfAPool.end(), axis.name) != kNotOfAPool.end()) continue;
    keys.push_back(axis.name);
  }
  return keys;
}

/// `spec` with the settings "KEY=VALUE,..." of one pool.
RunSpec with_settings(RunSpec spec, const std::string& pool,
                      const std::optional<std::string>& settings) {
  if (!settings) return spec;
  const std::vector<std::string> known = pool_keys();
  std::vector<std::string> given;
  std::string_view rest = *settings;
  while (true) {
    const std::string_view part = rest.substr(0, rest.find(','));
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos || equals == 0 || equals + 1 == part.size()) {
      throw InputError(fmt::format("--{} {}: '{}' is not KEY=VALUE", pool, *settings, part));
    }
    const std::string key(part.substr(0, equals));
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      throw InputError(
          fmt::format("--{}: {}", pool, unknown_name("setting of a pool", key, known).what()));
    }
    if (std::find(given.begin(), given.end(), key) != given.end()) {
      throw InputError(fmt::format("--{} {}: names {} twice", pool, *settings, key));
    }
    given.push_back(key);
    const auto axis = std::find_if(axes().begin(), axes().end(),
                                   [&](const Axis& candidate) { return candidate.name == key; });
    axis->set(spec, std::string(part.substr(equals + 1)));
    if (part.size() == rest.size()) return spec;
    rest.remove_prefix(part.size() + 1);
  }
}

bool parse_transfer(const std::string& name) {
  if (name == "pull") return false;
  if (name == "push") return true;
  throw unknown_name("--kv-transfer", name, {"pull", "push"});
}

/// The next `count` GPUs for each of `replicas` replicas.
void place(std::vector<std::vector<VertexId>>& ports, std::int64_t replicas, std::int64_t count,
           const std::vector<VertexId>& gpus, std::size_t& next, const std::string& what,
           const std::string& kv_link) {
  for (std::int64_t i = 0; i < replicas; ++i) {
    std::vector<VertexId>& own = ports.emplace_back();
    for (std::int64_t rank = 0; rank < count; ++rank) {
      if (next == gpus.size()) {
        throw InputError(
            fmt::format("--kv-link {}: {} GPUs are too few for {}", kv_link, gpus.size(), what));
      }
      own.push_back(gpus[next++]);
    }
  }
}

/// Where each replica's KV leaves and enters a topology.
std::vector<std::vector<VertexId>> place_on(const Topology& topology, std::int64_t prefill_replicas,
                                            std::int64_t prefill_gpus, std::int64_t decode_replicas,
                                            std::int64_t decode_gpus, const std::string& kv_link) {
  std::vector<std::vector<VertexId>> ports;
  const auto all = topology.of_kind(VertexKind::kGpu);
  const std::string prefill =
      fmt::format("{} prefill replicas of {}", prefill_replicas, prefill_gpus);
  const std::string decode = fmt::format("{} decode replicas of {}", decode_replicas, decode_gpus);
  const bool reserved = !topology.prefill_gpus.empty() || !topology.decode_gpus.empty();
  std::size_t next = 0;
  if (!reserved) {
    place(ports, prefill_replicas, prefill_gpus, all, next, prefill + " and " + decode, kv_link);
    place(ports, decode_replicas, decode_gpus, all, next, prefill + " and " + decode, kv_link);
    return ports;
  }
  // The pool that the topology does not place takes what the other leaves.
  const auto own_or_rest = [&](const std::vector<VertexId>& own,
                               const std::vector<VertexId>& other) {
    if (!own.empty()) return own;
    std::vector<VertexId> rest;
    for (const VertexId gpu : all) {
      if (std::find(other.begin(), other.end(), gpu) == other.end()) rest.push_back(gpu);
    }
    return rest;
  };
  place(ports, prefill_replicas, prefill_gpus,
        own_or_rest(topology.prefill_gpus, topology.decode_gpus), next, prefill, kv_link);
  next = 0;
  place(ports, decode_replicas, decode_gpus,
        own_or_rest(topology.decode_gpus, topology.prefill_gpus), next, decode, kv_link);
  return ports;
}

/// A port for each GPU or each replica of a link that is a fabric of its own.
std::vector<std::vector<VertexId>> place_on_star(const LinkSpec& link,
                                                 std::int64_t prefill_replicas,
                                                 std::int64_t prefill_gpus,
                                                 std::int64_t decode_replicas,
                                                 std::int64_t decode_gpus, std::size_t& count) {
  std::vector<std::vector<VertexId>> ports;
  VertexId next = 0;
  const auto add = [&](std::int64_t replicas, std::int64_t gpus) {
    for (std::int64_t i = 0; i < replicas; ++i) {
      std::vector<VertexId>& own = ports.emplace_back();
      for (std::int64_t rank = 0; rank < (link.per_gpu ? gpus : 1); ++rank) own.push_back(next++);
    }
  };
  add(prefill_replicas, prefill_gpus);
  add(decode_replicas, decode_gpus);
  count = next;
  return ports;
}

void check_reachable(const DisaggregatedConfig& config, std::size_t prefill_replicas,
                     const std::string& kv_link) {
  Routes routes(*config.topology);
  for (std::size_t p = 0; p < prefill_replicas; ++p) {
    for (std::size_t d = prefill_replicas; d < config.ports.size(); ++d) {
      const VertexId from = config.ports[p].front();
      const VertexId to = config.ports[d].front();
      if (!routes.between(from, to).empty()) continue;
      throw InputError(
          fmt::format("--kv-link {}: there is no path from {} of the prefill pool to {} of "
                      "the decode pool",
                      kv_link, config.topology->name_of(from), config.topology->name_of(to)));
    }
  }
}

/// KV that is sent moves in whole blocks, and what was evicted or preempted has no second home
/// here.
void check_paged(const std::string& kv, const RunSpec& spec) {
  const auto refuse = [](bool given, const std::string& flag, const std::string& accepted) {
    if (given) {
      throw InputError(fmt::format("--policy disaggregated {}: accepted: {}", flag, accepted));
    }
  };
  refuse(kv != "paged", "--kv " + kv, "--kv paged, whose blocks can be sent");
  refuse(spec.preemption_mode.value_or("recompute") != "recompute",
         "--preemption-mode " + spec.preemption_mode.value_or(""), "recompute");
  refuse(spec.kv_offload.has_value(), "--kv-offload",
         "no tiers: what either pool evicts is computed again");
}

}  // namespace

void check_pools(const RunSpec& spec, const PolicyEntry& policy, const std::string& policy_name) {
  const auto refuse = [&](bool given, const std::string& flag, const std::string& why) {
    if (given) throw InputError(fmt::format("--policy {} --{}: {}", policy_name, flag, why));
  };
  if (policy.disaggregated) {
    refuse(spec.replicas.has_value(), "replicas",
           "this policy has --prefill-replicas and --decode-replicas");
    return;
  }
  const std::string why = "only --policy disaggregated has pools";
  refuse(spec.prefill_replicas.has_value(), "prefill-replicas", why);
  refuse(spec.decode_replicas.has_value(), "decode-replicas", why);
  refuse(spec.kv_link.has_value(), "kv-link", why);
  refuse(spec.kv_transfer.has_value(), "kv-transfer", why);
  refuse(spec.prefill.has_value(), "prefill", why);
  refuse(spec.decode.has_value(), "decode", why);
}

void Resolver::resolve_disaggregated(const RunSpec& spec, const PolicyEntry& policy,
                                     ResolvedRun& run) {
  const RunSpec of_prefill = with_settings(spec, "prefill", spec.prefill);
  const RunSpec of_decode = with_settings(spec, "decode", spec.decode);
  check_paged(run.kv, of_prefill);
  check_paged(run.kv, of_decode);
  const Engine prefill = resolve_engine(of_prefill, run.policy, policy, run.warnings);
  const Engine decode = resolve_engine(of_decode, run.policy, policy, run.warnings);
  auto config = std::make_shared<DisaggregatedConfig>();
  const std::int64_t prefill_gpus = prefill.inputs.deployment.tensor_parallel;
  const std::int64_t decode_gpus = decode.inputs.deployment.tensor_parallel;
  run.cluster.replicas = spec.prefill_replicas.value_or(1);
  config->replicas = spec.decode_replicas.value_or(1);
  config->scheduler = decode.scheduler;
  config->host = decode.host;
  config->push = parse_transfer(spec.kv_transfer.value_or("pull"));
  config->layers = decode.inputs.model.layers;
  config->block_bytes =
      decode.inputs.model.kv_bytes_per_token(decode.inputs.deployment.kv, decode_gpus) *
      static_cast<double>(decode.scheduler.block_size);
  run.kv_link = spec.kv_link.value_or(std::string(kDefaultLink));
  Fabric fabric = load_fabric(run.kv_link);
  if (fabric.is_link) {
    std::size_t ports = 0;
    config->ports = place_on_star(fabric.link, run.cluster.replicas, prefill_gpus, config->replicas,
                                  decode_gpus, ports);
    config->topology = std::make_shared<Topology>(star(fabric.link, ports));
  } else {
    config->ports = place_on(fabric.topology, run.cluster.replicas, prefill_gpus, config->replicas,
                             decode_gpus, run.kv_link);
    config->topology = std::make_shared<Topology>(std::move(fabric.topology));
    check_reachable(*config, static_cast<std::size_t>(run.cluster.replicas), run.kv_link);
  }
  run.model = prefill.inputs.model.name;
  run.hardware = prefill.inputs.hardware.name;
  run.decode_hardware = decode.inputs.hardware.name;
  run.tensor_parallel_size = prefill_gpus;
  run.model_context = prefill.inputs.model.max_position;
  run.decode_tensor_parallel_size = decode_gpus;
  run.decode_kv_facts = kv_facts_of(run.kv, decode.scheduler, decode_gpus);
  run.cluster.scheduler = prefill.scheduler;
  run.cluster.host = prefill.host;
  run.parts.make_policy = run.parts.make_decode_policy = policy.make;
  run.parts.make_cost_model = prefill.make_cost_model;
  run.parts.make_decode_cost_model = decode.make_cost_model;
  const auto pool = [](const Engine& engine, std::int64_t replicas) {
    nlohmann::json json = engine.config;
    json.update(scheduler_json(engine.scheduler));
    json["replicas"] = replicas;
    json["host_times_ns"] = host_json(engine.host);
    return json;
  };
  run.config["prefill"] = pool(prefill, run.cluster.replicas);
  run.config["decode"] = pool(decode, config->replicas);
  const bool ships = fabric.file != run.kv_link;
  run.config["kv_link"] = {{"name", ships ? run.kv_link : "file"}, {"hash", fabric.hash}};
  run.config["kv_transfer"] = config->push ? "push" : "pull";
  run.cluster.disaggregated = std::move(config);
}

}  // namespace servesim
