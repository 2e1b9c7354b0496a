/// Requests made up on the fly, and a run of them through the engine.
#pragma once

#include <vector>

#include "cluster/simulation.hpp"
#include "core/rng.hpp"
#include "workload/trace_reader.hpp"

namespace servesim::bench {

/// Poisson arrivals of fixed lengths; `rate` 0: all at once.
struct PoissonLoad {
  std::uint64_t requests = 0;
  double rate = 0;
  std::int64_t input_tokens = 0, output_tokens = 0;
};

class PoissonTrace : public TraceReader {
 public:
  explicit PoissonTrace(const PoissonLoad& load) : load_(load), rng_(1, "bench") {}
  bool next(Request& request) override {
    if (sent_ == load_.requests) return false;
    if (load_.rate > 0) now_s_ += rng_.exponential() / load_.rate;
    request.index = sent_++;
    request.arrival = SimTime::from_seconds(now_s_);
    request.input_tokens = load_.input_tokens;
    request.output_tokens = load_.output_tokens;
    return true;
  }

 private:
  PoissonLoad load_;
  Rng rng_;
  std::uint64_t sent_ = 0;
  double now_s_ = 0;
};

/// Counts what it is told.
class CountingObserver : public Observer {
 public:
  void on_request(const RequestRecord& record) override {
    ++requests;
    last = record.last_token;
    checksum += static_cast<std::uint64_t>(record.first_token.ns()) * 31 +
                static_cast<std::uint64_t>(record.last_token.ns());
  }
  void on_token_gaps(SimTime, std::int64_t count) override { gaps += count; }
  std::int64_t requests = 0, gaps = 0;
  std::uint64_t checksum = 0;
  SimTime last;
};

/// The engine all benchmarks of the core use: linear step time, prefix caching off unless asked
/// for.
struct EngineSetup {
  std::int64_t base_us = 5000, per_token_us = 30;
  std::int64_t num_gpu_blocks = 27000;
  std::int64_t max_num_seqs = 1024;
  std::int64_t replicas = 1;
  bool prefix_caching = false;
  bool async_scheduling = true;
};

std::vector<EngineStats> run_engine(const EngineSetup& setup, TraceReader& trace,
                                    Observer& observer);

}  // namespace servesim::bench
