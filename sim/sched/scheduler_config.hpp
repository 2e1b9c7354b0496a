/// Settings of one engine's scheduler and KV pool, under vLLM's names.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "cost/kv_moves.hpp"
#include "kv/layer_groups.hpp"
#include "kv/offload_tiers.hpp"
#include "kv/region_rules.hpp"

namespace servesim {

enum class SchedulingPolicy : std::uint8_t { kFcfs, kPriority };
/// What happens to a sequence that must give way: its KV is thrown away and computed again, or
/// copied to host memory and back; or none ever must, because only what fits to its end is
/// admitted.
enum class PreemptionMode : std::uint8_t { kRecompute, kSwap, kStall };
enum class SpeculativeMethod : std::uint8_t { kNone, kNgram, kEagle };

/// Speculative decoding: how many tokens are drafted per step and how many of them are accepted.
struct SpeculativeConfig {
  SpeculativeMethod method = SpeculativeMethod::kNone;
  std::int64_t num_speculative_tokens = 0;
  /// Each draft is accepted with this probability if all before it were.
  double acceptance_rate = 0;
  /// Instead of drawing: (7 * index + 3 * outputs) mod (drafts + 1), the rule of the recorded
  /// schedules.
  bool deterministic_acceptance = false;
};

inline constexpr std::int64_t kMostPipelineStages = 64;

/// Everything that decides what a scheduler does. Defaults are the bare vLLM values;
/// cost/server_defaults.hpp has those of a server, which depend on the memory of its GPU.
struct SchedulerConfig {
  std::int64_t block_size = 16;
  std::int64_t num_gpu_blocks =
      0;  ///< of all layers; includes the null block, so one less is usable
  std::int64_t max_num_seqs = 128;
  std::int64_t max_num_batched_tokens = 2048;
  std::int64_t max_model_len = 8192;
  std::int64_t long_prefill_token_threshold = 0;  ///< 0: off
  double watermark = 0;  ///< fraction of num_gpu_blocks kept free at admission
  bool enable_prefix_caching = true;
  bool enable_chunked_prefill = true;
  bool async_scheduling = true;
  /// Stages the layers are split over, each with a batch in flight. REQUIRES of more than one: no
  /// asynchronous scheduling, no speculation, preemption by recompute or stall, no tiers; at most
  /// kMostPipelineStages.
  std::int64_t pipeline_parallel = 1;
  bool scheduler_reserve_full_isl = true;
  SchedulingPolicy scheduling_policy = SchedulingPolicy::kFcfs;
  /// Whether a request whose prompt and outputs exceed max_model_len is served until it reaches it
  /// (what the engine core does) instead of being rejected (what the API server does).
  bool truncate_at_max_model_len = false;
  SpeculativeConfig speculative;
  /// Contiguous regions sized by this rule; null: paged. REQUIRES then: no prefix caching, no
  /// speculation.
  RegionRule region_rule = nullptr;
  /// How the layers share the pool. REQUIRES of groups with a window: no prefix caching, paged KV.
  LayerGroups layer_groups;
  PreemptionMode preemption_mode = PreemptionMode::kRecompute;
  std::int64_t swap_blocks = 0;  ///< blocks of host memory that kSwap may fill
  KvMoveCosts moves;
  /// Tiers that keep evicted prefix blocks; none: they are forgotten.
  OffloadConfig offload;
  /// Seconds that computing so many prompt tokens after so many others adds to a step: what loading
  /// them is weighed against. Empty: loading is always worth it.
  std::function<double(std::int64_t tokens, std::int64_t context)> prefill_seconds;

  /// Slots beyond the tokens of a step that an allocation must hold (section 10 of the semantics).
  std::int64_t lookahead() const {
    return speculative.method == SpeculativeMethod::kEagle ? speculative.num_speculative_tokens : 0;
  }
};

/// The same settings in the units of the pool: a contiguous space has slots where a paged one has
/// blocks; those of a pool that groups of layers share are the blocks and slots of one group.
SchedulerConfig in_pool_units(SchedulerConfig config);

/// Whether a pool of `num_gpu_blocks` has room for one sequence of max_model_len tokens.
bool holds_max_model_len(const SchedulerConfig& config, std::int64_t num_gpu_blocks);

/// Throws InputError for settings that contradict each other (vLLM's own checks).
void validate(const SchedulerConfig& config);

}  // namespace servesim
