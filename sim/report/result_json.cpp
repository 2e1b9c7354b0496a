#include "report/result_json.hpp"

#include <sys/resource.h>

#include <cmath>

#include "report/derived.hpp"
#include "report/percentile.hpp"

namespace servesim {
namespace {

using Json = nlohmann::ordered_json;

Json or_null(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json or_null(bool present, double value) {
  return present ? Json(value) : Json(nullptr);
}

void add_distribution(Json& run, const std::string& name, const SampleSummary& d) {
  const bool any = d.count > 0;
  run["mean_" + name + "_ms"] = or_null(any, d.mean);
  run["median_" + name + "_ms"] = or_null(any, d.median);
  run["std_" + name + "_ms"] = or_null(any, d.std);
  run["p90_" + name + "_ms"] = or_null(any, d.p90);
  run["p95_" + name + "_ms"] = or_null(any, d.p95);
  run["p99_" + name + "_ms"] = or_null(any, d.p99);
}

/// The keys that `vllm bench serve` writes.
void add_vllm_keys(Json& run, const RunResult& result) {
  const Metrics& m = result.metrics;
  const Throughput rate = throughput_of(m);
  run["duration"] = m.duration_s;
  run["completed"] = m.completed;
  run["total_input_tokens"] = m.total_input_tokens;
  run["total_output_tokens"] = m.total_output_tokens;
  run["request_throughput"] = rate.requests_per_s;
  run["request_goodput"] = or_null(m.has_goodput, rate.good_per_s);
  run["output_throughput"] = rate.output_tokens_per_s;
  run["total_token_throughput"] = rate.total_tokens_per_s;
  add_distribution(run, "ttft", m.ttft_ms);
  add_distribution(run, "tpot", m.tpot_ms);
  add_distribution(run, "itl", m.itl_ms);
  add_distribution(run, "e2el", m.e2el_ms);
}

std::int64_t whole_bytes(std::int64_t slots, const KvFacts& kv) {
  return std::llround(static_cast<double>(slots) * kv.bytes_per_slot);
}

Json offload_json(const EngineResult& result) {
  const OffloadCounters& offload = result.engine.offload;
  const std::int64_t size = result.kv.block_size;
  return {{"stored_tokens", offload.stored_blocks * size},
          {"loaded_tokens", offload.loaded_blocks * size},
          {"loaded_bytes", whole_bytes(offload.loaded_blocks * size, result.kv)},
          {"dropped_tokens", offload.dropped_blocks * size},
          {"evicted_tokens", offload.evicted_blocks * size},
          {"recomputed_tokens", offload.recomputed_blocks * size}};
}

Json kv_json(const EngineResult& result, const EngineResult& pool) {
  const KvShares shares = kv_shares_of(pool);
  const EngineStats& e = result.engine;
  Json kv;
  kv["allocator"] = result.kv.allocator;
  kv["num_gpu_blocks"] = result.kv.num_gpu_blocks;
  kv["block_size"] = result.kv.block_size;
  kv["capacity_tokens"] = result.kv.capacity_tokens;
  kv["mean_used"] = shares.used;
  kv["peak_used"] = kv_peak_allocated(pool);
  kv["internal_fragmentation"] = shares.internal;
  kv["reservation_waste"] = shares.reserved;
  kv["external_fragmentation"] = shares.external;
  kv["free"] = shares.free;
  const KvShares peak = kv_shares_at_peak(pool);
  kv["at_peak"] = {{"used", peak.used},
                   {"internal_fragmentation", peak.internal},
                   {"reservation_waste", peak.reserved},
                   {"external_fragmentation", peak.external},
                   {"free", peak.free}};
  kv["preemptions"] = e.preemptions;
  kv["recomputed_tokens"] = e.recomputed_tokens;
  kv["swapped_bytes"] = whole_bytes(e.swapped_tokens, result.kv);
  kv["copied_bytes"] = whole_bytes(e.copied_tokens, result.kv);
  kv["offload"] = result.kv.offloads ? offload_json(result) : Json(nullptr);
  kv["prefix_hit_tokens"] = e.prefix_hit_tokens;
  kv["prefix_hit_rate"] =
      e.prefix_queried_tokens > 0
          ? static_cast<double>(e.prefix_hit_tokens) / static_cast<double>(e.prefix_queried_tokens)
          : 0.0;
  return kv;
}

Json engine_json(const EngineResult& result, const EngineRates& rates) {
  const EngineStats& e = result.engine;
  Json engine;
  engine["steps"] = e.steps;
  engine["mean_batch_size"] = rates.mean_batch_size;
  engine["mean_step_ms"] = rates.mean_step_ms;
  engine["busy_fraction"] = rates.busy_fraction;
  if (e.bubbles.ns() > 0) engine["bubble_fraction"] = rates.bubble_fraction;
  engine["mfu"] = or_null(result.peak_flops > 0, rates.mfu);
  engine["mbu"] = or_null(result.peak_bytes_per_s > 0, rates.mbu);
  Json& seconds = engine["time_by_component_s"] = Json::object();
  for (std::size_t i = 0; i < kComponentCount; ++i) {
    seconds[std::string(kComponentNames[i])] = e.seconds[i];
  }
  return engine;
}

SampleSummary summary_of(std::vector<float> samples) {
  return summarize(samples);
}

/// The transfers over each link that was used.
Json links_json(const RunResult& result) {
  const double duration_s = result.metrics.duration_s;
  Json links = Json::array();
  for (const LinkUse& link : result.transfers.links) {
    const SampleSummary transfer = summary_of(link.stats.transfer_ms);
    const double possible = 2 * link.bytes_per_s * duration_s;
    links.push_back({{"name", link.name},
                     {"kv_bytes", link.stats.bytes},
                     {"busy_fraction", duration_s > 0 ? link.stats.busy.seconds() / duration_s : 0},
                     {"utilization", possible > 0 ? link.stats.bytes / possible : 0},
                     {"mean_transfer_ms", or_null(transfer.count > 0, transfer.mean)},
                     {"p99_transfer_ms", or_null(transfer.count > 0, transfer.p99)}});
  }
  return links;
}

/// What disaggregated runs have beside.
void add_disaggregation(Json& run, const RunResult& result) {
  if (result.pools.empty()) return;
  const KvTransferStats& t = result.transfers;
  const SampleSummary transfer = summary_of(t.transfer_ms);
  const SampleSummary wait = summary_of(t.wait_ms);
  run["kv_transfer"] = {{"transfers", t.transfers},
                        {"kv_bytes", t.kv_bytes},
                        {"cached_tokens", t.cached_tokens},
                        {"mean_transfer_ms", or_null(transfer.count > 0, transfer.mean)},
                        {"p99_transfer_ms", or_null(transfer.count > 0, transfer.p99)},
                        {"mean_wait_ms", or_null(wait.count > 0, wait.mean)},
                        {"p99_wait_ms", or_null(wait.count > 0, wait.p99)}};
  Json& pools = run["pools"] = Json::object();
  for (const PoolResult& pool : result.pools) {
    pools[pool.role] = {
        {"hardware", pool.hardware},
        {"replicas", pool.replicas},
        {"kv", kv_json(pool, pool)},
        {"engine", engine_json(pool, engine_rates_of(pool, result.metrics.duration_s))}};
  }
}

/// What runs with a scenario have beside: where they dip.
void add_faults(Json& run, const RunResult& result) {
  if (!result.faults) return;
  run["faults"] = {{"rerouted", result.faults->rerouted},
                   {"failed_transfers", result.faults->failed_transfers},
                   {"timed_out", result.faults->timed_out}};
  Json& timeline = run["timeline"] = Json::array();
  for (const TimelineBucket& bucket : result.timeline) {
    timeline.push_back({{"from_s", bucket.from_s},
                        {"to_s", bucket.to_s},
                        {"completed", bucket.completed},
                        {"output_tokens", bucket.output_tokens},
                        {"mean_ttft_ms", or_null(bucket.completed > 0, bucket.mean_ttft_ms)}});
  }
}

Json sim_json(const RunResult& result) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  Json sim;
  sim["wall_s"] = result.wall_s;
  sim["cpu_s"] = result.cpu_s;
  sim["requests_per_s"] =
      result.wall_s > 0 ? static_cast<double>(result.metrics.total) / result.wall_s : 0.0;
  sim["peak_rss_bytes"] = std::int64_t{usage.ru_maxrss} * 1024;
  return sim;
}

}  // namespace

Json run_json(const RunResult& result) {
  Json run;
  run["trace"] = result.trace;
  run["policy"] = result.policy;
  run["model"] = result.model;
  run["hardware"] = result.hardware;
  run["config"] = result.config;
  run.update(metrics_json(result));
  run["warnings"] = result.warnings;
  run["sim"] = sim_json(result);
  return run;
}

Json metrics_json(const RunResult& result) {
  const Metrics& m = result.metrics;
  Json json;
  json["requests"] = {{"total", m.total},
                      {"completed", m.completed},
                      {"rejected", m.rejected},
                      {"unfinished", m.unfinished}};
  add_vllm_keys(json, result);
  json["kv"] = kv_json(result, kv_pool_of(result));
  json["engine"] = engine_json(result, engine_rates_of(result));
  json["links"] = links_json(result);
  add_disaggregation(json, result);
  add_faults(json, result);
  if (result.gpu_hour_cost) {
    json["cost"] = cost_json(cost_of(result));
    json["cost"]["gpus"] = result.gpus;
  }
  return json;
}

Json cost_json(const Cost& cost) {
  return {{"gpu_hour_cost", cost.gpu_hour_cost},
          {"usd", cost.usd},
          {"usd_per_million_output_tokens", or_null(cost.per_million_output_tokens)},
          {"usd_per_million_tokens", or_null(cost.per_million_tokens)}};
}

std::string version() {
  return SERVESIM_VERSION;
}

nlohmann::ordered_json goodput_json(const GoodputTargets& targets) {
  auto json = nlohmann::ordered_json::object();
  if (targets.ttft_ms) json["ttft_ms"] = *targets.ttft_ms;
  if (targets.tpot_ms) json["tpot_ms"] = *targets.tpot_ms;
  if (targets.e2el_ms) json["e2el_ms"] = *targets.e2el_ms;
  return json;
}

std::string result_json(const std::vector<RunResult>& runs, const std::string& command,
                        std::uint64_t seed, const Json& comparison) {
  Json document;
  document["schema"] = "servesim/result/v1";
  document["version"] = version();
  document["command"] = command;
  document["seed"] = seed;
  Json& list = document["runs"] = Json::array();
  for (const RunResult& result : runs) list.push_back(run_json(result));
  if (!comparison.is_null()) document["comparison"] = comparison;
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace servesim
