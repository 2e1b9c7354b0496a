// What goes wrong in a run, as the user has it: --scenario, --request-timeout, --max-queue.
#include <fmt/format.h>

#include <algorithm>

#include "cli/resolve_engine.hpp"
#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/params.hpp"

namespace servesim {
namespace {

constexpr double kLongestS = 1e9;

void read_replica(Params& p, std::int64_t replicas, ScenarioEvent& event) {
  const auto replica = p.required<std::int64_t>("replica");
  if (replica < 0 || replica >= replicas) {
    throw p.error("replica",
                  fmt::format("there is no replica {}; accepted: 0 to {}", replica, replicas - 1));
  }
  event.replica = static_cast<std::size_t>(replica);
  const auto state = p.required<std::string>("state");
  if (state != "down" && state != "up") throw p.error("state", "accepted: down, up");
  event.kind =
      state == "down" ? ScenarioEvent::Kind::kReplicaDown : ScenarioEvent::Kind::kReplicaUp;
}

void read_link(Params& p, const ClusterConfig& cluster, ScenarioEvent& event) {
  if (!cluster.disaggregated) {
    throw p.error("link", "only --policy disaggregated has links that KV crosses");
  }
  try {
    event.link = cluster.disaggregated->topology->link(p.required<std::string>("link"));
  } catch (const InputError& error) {
    throw p.error("link", error.what());
  }
  event.kind = ScenarioEvent::Kind::kLink;
  event.bandwidth = p.number("bandwidth", 0, 1);
}

std::vector<ScenarioEvent> read_scenario(const nlohmann::json& document, const std::string& path,
                                         const ClusterConfig& cluster) {
  Params root(document, path);
  root.allow("events");
  root.optional<std::string>("description", "");
  root.finish();
  if (!root.has("events") || !document.at("events").is_array()) {
    throw root.error("events", "must be a list");
  }
  const std::int64_t decode = cluster.disaggregated ? cluster.disaggregated->replicas : 0;
  std::vector<ScenarioEvent> events;
  for (const nlohmann::json& entry : document.at("events")) {
    Params p(entry, path, fmt::format("/events/{}", events.size()));
    ScenarioEvent event;
    event.at = SimTime::from_seconds(p.number("at_s", 0, kLongestS));
    if (p.has("replica") == p.has("link")) {
      throw p.error("replica", "an event has either a replica or a link");
    }
    if (p.has("replica")) {
      read_replica(p, cluster.replicas + decode, event);
    } else {
      read_link(p, cluster, event);
    }
    p.finish();
    events.push_back(event);
  }
  std::stable_sort(events.begin(), events.end(),
                   [](const ScenarioEvent& a, const ScenarioEvent& b) { return a.at < b.at; });
  return events;
}

}  // namespace

void resolve_faults(const RunSpec& spec, ResolvedRun& run) {
  if (spec.scenario) {
    const nlohmann::json document = read_json_file(*spec.scenario);
    run.cluster.scenario = read_scenario(document, *spec.scenario, run.cluster);
    run.config["scenario"] = canonical_hash(document);
  }
  if (spec.max_queue) {
    run.cluster.max_queue = *spec.max_queue;
    run.config["max_queue"] = *spec.max_queue;
  }
  if (spec.request_timeout) {
    run.cluster.request_timeout = SimTime::from_seconds(*spec.request_timeout);
    run.config["request_timeout_s"] = *spec.request_timeout;
  }
}

}  // namespace servesim
