/// Prices steps from the kernels a model runs on a GPU.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "cost/pipeline_split.hpp"
#include "cost/rank_costs.hpp"
#include "cost/step_cost_model.hpp"

namespace servesim {

/// A step is the sum of its kernels (kernel_forms.hpp has their forms): the layers'
/// linear layers, attention and elementwise kernels, two all-reduces a layer under tensor
/// parallelism, LM head over the sampled positions, sampling. Decode and prefill attention of a
/// mixed step are separate kernels whose times add.
///
/// A step heats itself: it is priced at the heat half-way through its layers' linear part. Heat is
/// resolved to 1/32 when pricing, so that what depends on token counts alone can be
/// memoised; results do not depend on what was priced before.
class RooflineCostModel final : public StepCostModel {
 public:
  /// Throws InputError when the model cannot be sharded as asked.
  RooflineCostModel(const ModelSpec& model, const HardwareSpec& hardware,
                    const DeploymentSpec& deployment);

  StepCost price(const StepShape& shape, Heat heat) override;
  DecodeStep decode_step(std::int64_t seqs, std::int64_t context, const SharedContext& shared,
                         Heat& heat) override;
  AttentionWork decode_attention_work() const override;
  /// The parts of what price() returns, of one rank. Not memoised: for explaining single steps.
  PartCosts parts(const StepShape& shape, Heat heat) const;
  /// x' = (x + c/tau)/(1 + t/tau) for t elapsed seconds, c of them compute-bound: the implicit
  /// Euler step of tau dx/dt = c/t - x. Stays within [0, 1] for any t and needs no exp().
  Heat next_heat(Heat heat, double compute_bound_s, SimTime elapsed) const override;
  std::span<const SimTime> stages(const StepCost& cost) override { return split_(cost); }
  double peak_flops() const override { return peak_flops_; }
  double peak_bytes_per_s() const override { return peak_bytes_per_s_; }

 private:
  static constexpr int kHeatLevels = 32;

  /// What a number of tokens costs at one level, on all ranks; without `total`.
  struct TokenCost {
    /// The level half-way through a step of these tokens that starts at this one: a step heats
    /// itself.
    int level_within = 0;
    StepCost cost;
  };
  /// Places in token_costs_ by number of tokens, one past; 0: not priced yet.
  using Memo = std::array<std::vector<std::uint32_t>, kHeatLevels + 1>;
  /// A decode-only step of a certain number of sequences.
  struct DecodeEntry {
    StepCost rest;      ///< all but attention
    double rest_s = 0;  ///< its unrounded seconds
    double new_tokens = 0;
    DecodeAttention attention;
  };

  static int level_of(Heat heat);
  int level_within(int level, double compute_bound_s, double seconds) const;
  static double heat_at(int level) { return static_cast<double>(level) / kHeatLevels; }
  const DecodeEntry& decode_entry(std::int64_t seqs, int level);
  std::unique_ptr<DecodeEntry> make_decode_entry(std::int64_t seqs, int level);
  /// `price`(tokens, heat) at `level`, looked up in `memo`. Good until the next call.
  template <typename Price>
  const TokenCost& priced(Memo& memo, std::int64_t tokens, int level, Price price);
  const TokenCost& body(std::int64_t tokens, int level);
  const TokenCost& head(std::int64_t rows, int level);
  const TokenCost& drafting(std::int64_t seqs, int level);
  double attention_ahead(const DecodeEntry& entry, std::int64_t seqs, std::int64_t context,
                         const SharedContext& shared);
  StepCost linear_parts(std::int64_t tokens, std::int64_t sampled, std::int64_t seqs, int level);
  StepCost decode_only(const StepShape& shape, int level);
  void add_decode_work(StepCost& cost, double tokens) const;

  RankCosts costs_;
  PipelineSplit split_;
  double ranks_;
  double stages_;
  double peak_flops_;
  double peak_bytes_per_s_;
  bool drafts_;
  double heat_time_constant_s_;
  std::array<std::vector<std::unique_ptr<DecodeEntry>>, kHeatLevels + 1> decode_;
  std::int64_t last_seqs_ = -1;
  int last_level_ = -1;
  const DecodeEntry* last_entry_ = nullptr;
  /// Attention of the decode step at hand and, once steps have followed each other, of the next.
  struct Ahead {
    std::int64_t seqs = -1;
    std::int64_t context = 0;  ///< of the step that `next` stands at
    SharedContext shared;
    std::size_t next = 0, end = 0;
    std::array<double, 4> seconds{};
  };
  Ahead ahead_;
  Memo body_, head_, drafting_;
  std::deque<TokenCost> token_costs_;
  TokenCost not_kept_;  ///< of more tokens than are memoised
};

}  // namespace servesim
