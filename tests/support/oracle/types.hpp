/// The plain data of the oracle engine: configuration, requests, step logs and outcomes.
///
/// The oracle is a slow, literal model of the scheduler which the production engine is compared
/// with. It shares no code with that engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace servesim::oracle {

/// How batches are formed.
enum class Batching { kVllm, kStatic };

/// The order in which waiting requests are admitted (and running ones are preempted).
enum class QueuePolicy { kFcfs, kPriority };

/// Where draft tokens come from.
enum class SpecMethod { kNone, kNgram, kEagle };

/// One engine, with the defaults of the recorded schedules.
struct Config {
  Batching batching = Batching::kVllm;
  QueuePolicy policy = QueuePolicy::kFcfs;
  std::int64_t num_gpu_blocks = 0;  ///< Required; includes the null block.
  std::int64_t block_size = 16;
  std::int64_t max_num_seqs = 16;
  std::int64_t max_num_batched_tokens = 2048;
  std::int64_t max_model_len = 8192;
  bool enable_prefix_caching = true;
  bool enable_chunked_prefill = true;
  std::int64_t long_prefill_token_threshold = 0;  ///< 0 = off.
  double watermark = 0.0;
  bool scheduler_reserve_full_isl = true;
  bool async_scheduling = false;
  std::int64_t pipeline_parallel = 1;  ///< Stages; more than one need async_scheduling off.
  SpecMethod spec_method = SpecMethod::kNone;
  std::int64_t num_speculative_tokens = 0;
  std::int64_t base_us = 0;       ///< Read by `linear_price` only.
  std::int64_t per_token_us = 0;  ///< Read by `linear_price` only.
  std::int64_t host_ns = 0;       ///< Added before every step that is not empty.
  /// Groups of layers that share the pool, a block holding tokens of one of them: those that keep
  /// every token, and those that keep the last `window`. The latter need prefix caching off.
  std::int64_t full_groups = 1;
  std::int64_t windowed_groups = 0;
  std::int64_t window = 0;
};

/// One request of the trace; prompt token p has the id `hash_ids[p / hash_block]`, or is unique to
/// the request when there are no hash ids.
struct Request {
  std::string id;
  std::int64_t arrival_ns = 0;
  int priority = 0;
  std::int64_t prompt_len = 0;
  std::int64_t output_len = 0;
  std::vector<std::uint64_t> hash_ids;
  std::int64_t hash_block = 0;
};

/// What one request does in one step, as the price sees it.
struct ScheduledWork {
  std::size_t request = 0;
  std::int64_t tokens = 0;
  std::int64_t context = 0;  ///< Tokens computed before this step.
  bool samples = false;      ///< False for a prefill chunk which is not the last one.
  std::int64_t drafts = 0;
};

/// Prices one step, in ns. The number is that of the tokens in blocks which a running request holds
/// and another one held before it.
using Price = std::function<std::int64_t(const std::vector<ScheduledWork>&, std::int64_t)>;

/// One line of a schedule log; every field of the recorded schedules, times in ns.
struct LoggedStep {
  std::int64_t step = 0;
  std::int64_t t_ns = 0;
  std::vector<std::pair<std::string, std::int64_t>> scheduled;
  std::vector<std::string> admitted;
  std::vector<std::string> resumed;
  std::vector<std::string> preempted;
  std::map<std::string, std::int64_t> prefix_hit_tokens;
  std::map<std::string, std::int64_t> drafts;
  std::int64_t free_blocks = 0;
  std::vector<std::string> running;
  std::vector<std::string> waiting;
  std::map<std::string, std::int64_t> tokens_out;
  std::map<std::string, std::int64_t> accepted;
  std::vector<std::string> finished;
  std::int64_t done_ns = 0;
  std::int64_t free_blocks_after = 0;
};

/// How a request ended.
enum class Status { kUnfinished, kCompleted, kRejected };

/// What happened to one request.
struct Outcome {
  Status status = Status::kUnfinished;
  std::string reject_reason;
  std::int64_t admit_ns = -1;  ///< Start of the step of the first admission.
  std::int64_t first_token_ns = -1;
  std::int64_t finish_ns = -1;
  std::vector<std::int64_t> token_ns;  ///< Delivery time of every output token.
  std::int64_t preemptions = 0;
  std::int64_t first_prefix_hit_tokens = 0;  ///< Of the first admission.
  std::int64_t total_prefix_hit_tokens = 0;  ///< Of all admissions, resumptions included.
  /// Tokens scheduled at positions which had been computed before a preemption threw them away.
  std::int64_t recomputed_tokens = 0;
};

/// The log of a run and, in the order of the requests given, their outcomes.
struct Result {
  std::vector<LoggedStep> steps;
  std::vector<Outcome> outcomes;
};

}  // namespace servesim::oracle
