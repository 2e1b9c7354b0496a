#include "validation/serving_run.hpp"

#include <algorithm>
#include <memory>

#include "cost/roofline_cost_model.hpp"
#include "engine/observer.hpp"
#include "sched/policies/policies.hpp"

namespace servesim {
namespace {

class LoadReader final : public TraceReader {
 public:
  explicit LoadReader(const std::vector<LoadRequest>& load) : load_(load) {}

  bool next(Request& request) override {
    if (next_ == load_.size()) return false;
    const LoadRequest& from = load_[next_];
    request = Request{};
    request.index = next_++;
    request.arrival = from.arrival;
    request.input_tokens = from.input_tokens;
    request.output_tokens = from.output_tokens;
    if (from.prompt >= 0) set_identity(from, request);
    return true;
  }

 private:
  static void set_identity(const LoadRequest& from, Request& request) {
    constexpr std::int64_t kBlock = 16;
    constexpr std::uint64_t kMostBlocks = 1 << 16;
    request.hash_block = kBlock;
    const auto prompt = static_cast<std::uint64_t>(from.prompt);
    const auto group = static_cast<std::uint64_t>(from.group);
    for (std::int64_t at = 0; at < from.input_tokens; at += kBlock) {
      const bool of_group = from.group >= 0 && at + kBlock <= from.group_tokens;
      const std::uint64_t block = static_cast<std::uint64_t>(at / kBlock);
      request.hash_ids.push_back(2 * ((of_group ? group : prompt) * kMostBlocks + block) +
                                 (of_group ? 1 : 0));
    }
  }

  const std::vector<LoadRequest>& load_;
  std::size_t next_ = 0;
};

class LatencyRecorder final : public Observer {
 public:
  explicit LatencyRecorder(std::size_t requests) : latencies(requests) {}

  void on_request(const RequestRecord& r) override {
    if (r.status != RequestStatus::kCompleted) return;
    RequestLatency& latency = latencies.at(r.index);
    latency.completed = true;
    latency.ttft_ms = (r.first_token - r.arrival).ms();
    latency.e2e_ms = (r.last_token - r.arrival).ms();
    if (r.generated_tokens > 1) {
      latency.tpot_ms =
          (latency.e2e_ms - latency.ttft_ms) / static_cast<double>(r.generated_tokens - 1);
    }
    end = std::max(end, r.last_token);
  }

  std::vector<RequestLatency> latencies;
  SimTime end;
};

}  // namespace

std::vector<RequestLatency> replay(const ServerSpec& server, const std::vector<LoadRequest>& load,
                                   SimTime* end) {
  const auto from_ms = [](double ms) { return SimTime::from_seconds(ms / 1000); };
  ClusterConfig config;
  config.scheduler = server.scheduler;
  const HostParameters& host = server.hardware.host;
  config.host.step = from_ms(host.step_ms);
  if (server.front_end) {
    config.host.front_before = from_ms(host.front_end_before_ms);
    config.host.front_after = from_ms(host.front_end_after_ms);
  }
  ClusterParts parts;
  parts.make_policy = make_chunked;
  parts.make_cost_model = [&] {
    return std::make_unique<RooflineCostModel>(server.model, server.hardware, server.deployment);
  };
  parts.make_router = make_round_robin;
  LoadReader reader(load);
  LatencyRecorder recorder(load.size());
  RunControl control;
  simulate(config, parts, reader, recorder, nullptr, nullptr, control);
  if (end != nullptr) *end = recorder.end;
  return recorder.latencies;
}

}  // namespace servesim
