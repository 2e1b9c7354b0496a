/// The obvious engine: continuous batching with chunked prefill that loops over every running
/// sequence in every step.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "synthetic.hpp"
#include "workload/trace_reader.hpp"

namespace servesim::bench {

/// Block counts only (no prefix caching), synchronous, FCFS, preemption by recompute, linear step
/// time. It decides what the production engine decides on the same settings; the benchmarks check
/// that before they compare.
class LoopEngine {
 public:
  struct Result {
    std::int64_t completed = 0, steps = 0;
    std::uint64_t checksum =
        0;  ///< of all first and last token times, as CountingObserver sums them
  };

  explicit LoopEngine(const EngineSetup& setup) : setup_(setup), free_(setup.num_gpu_blocks - 1) {}
  Result run(TraceReader& trace);

 private:
  struct Sequence {
    std::int64_t prompt, target, computed, outputs, blocks, scheduled;
    std::int64_t first_token, last_token;
    bool has_first;
    std::int64_t known() const { return prompt + outputs; }
  };

  void schedule();
  void schedule_running(std::int64_t& budget);
  void admit(std::int64_t& budget);
  void update(Result& result);
  static std::int64_t blocks_for(std::int64_t tokens) { return (tokens + 15) / 16; }

  EngineSetup setup_;
  std::int64_t free_;
  std::int64_t now_ = 0;
  std::int64_t tokens_ = 0;
  bool preempted_ = false;
  std::vector<Sequence> running_;
  std::deque<Sequence> waiting_;
};

}  // namespace servesim::bench
