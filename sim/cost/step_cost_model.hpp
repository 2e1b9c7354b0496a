/// Prices engine steps.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/time.hpp"
#include "cost/step_shape.hpp"

namespace servesim {

/// The parts of a step's time, as `engine.time_by_component_s` names them.
enum class Component : std::uint8_t {
  kGemm,
  kAttentionPrefill,
  kAttentionDecode,
  kElementwise,
  kLmHead,
  kSampling,
  kAllReduce,
  kMoe,
  kDraft,         ///< the draft model of speculative decoding
  kPipelineSend,  ///< activations handed on from stage to stage
  kHost,          ///< host time that is not hidden behind the GPU (added by the engine)
  kKvTransfer,    ///< KV moved before a step, as far as it is not hidden (added by the engine)
  kOther,         ///< the whole of a `linear` step
};
inline constexpr std::size_t kComponentCount = 13;
inline constexpr std::array<std::string_view, kComponentCount> kComponentNames{"gemm",
                                                                               "attention_prefill",
                                                                               "attention_decode",
                                                                               "elementwise",
                                                                               "lm_head",
                                                                               "sampling",
                                                                               "all_reduce",
                                                                               "moe",
                                                                               "draft",
                                                                               "pipeline_send",
                                                                               "host",
                                                                               "kv_transfer",
                                                                               "other"};

/// State of sustained compute: 0 after a pause, 1 after seconds of compute-bound work (DESIGN.md
/// section 7).
struct Heat {
  double x = 0;
};

/// Price of one step. ENSURES: total > 0 for a step with tokens, and equals the sum of the parts up
/// to rounding to whole nanoseconds.
struct StepCost {
  SimTime total;
  std::array<double, kComponentCount> seconds{};  ///< by Component
  double compute_bound_s =
      0;                 ///< seconds of `total` in which tensor cores are the limiting resource
  double flops = 0;      ///< model FLOPs of the whole engine (all ranks), for MFU
  double hbm_bytes = 0;  ///< HBM traffic of the whole engine (all ranks), for MBU
};

/// A decode-only step, split into what depends on the cached tokens and what does not, so that a
/// stretch of steps can be summed without copying the parts of each.
struct DecodeStep {
  SimTime total;
  double attention_s = 0;  ///< Component::kAttentionDecode
  const StepCost* rest =
      nullptr;  ///< all other parts; stays valid and unchanged as long as the model lives
};

/// FLOPs and HBM bytes of decode attention per cached token, summed over layers and ranks.
struct AttentionWork {
  double flops = 0;
  double hbm_bytes = 0;
};

/// Prices steps from their aggregates. Pure: equal arguments give equal results, whatever was
/// priced before (implementations may memoise, so one instance must not be shared between threads).
class StepCostModel {
 public:
  virtual ~StepCostModel() = default;

  /// The price of `shape`. A step without tokens costs nothing.
  virtual StepCost price(const StepShape& shape, Heat heat) = 0;

  /// The price of a decode-only step of `seqs` sequences with `context` cached tokens in all, of
  /// which `shared` says what counts more than once; `heat` moves on to the state after it.
  /// ENSURES: equals price() of that shape followed by next_heat(), in time independent of `seqs`.
  virtual DecodeStep decode_step(std::int64_t seqs, std::int64_t context,
                                 const SharedContext& shared, Heat& heat) = 0;

  /// True when decode_step() depends on `seqs` alone, which lets the engine take a stretch of steps
  /// at once.
  virtual bool decode_step_is_constant() const { return false; }

  /// How the time of a step whose price is `cost` divides among the stages of a pipeline, each with
  /// what it takes to hand its activations on. ENSURES: adds up to cost.total. A single stage
  /// unless the model was made for more. Good until the next call.
  virtual std::span<const SimTime> stages(const StepCost& cost) {
    whole_ = cost.total;
    return {&whole_, 1};
  }

  /// Exact per-token work of decode attention: what price() adds to flops and hbm_bytes per token
  /// of decode_context.
  virtual AttentionWork decode_attention_work() const { return {}; }

  /// The state after a step (or, with compute_bound_s = 0, a pause) of length `elapsed`.
  virtual Heat next_heat(Heat heat, double compute_bound_s, SimTime elapsed) const = 0;

  /// Peak rates of the whole engine, for MFU and MBU; 0 when the model knows none.
  virtual double peak_flops() const { return 0; }
  virtual double peak_bytes_per_s() const { return 0; }

 private:
  SimTime whole_;
};

}  // namespace servesim
