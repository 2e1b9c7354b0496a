#include "cost/shared_cost_model.hpp"

#include <algorithm>
#include <list>
#include <utility>

namespace servesim {
namespace {

/// Passes every call on.
class Handle final : public StepCostModel {
 public:
  explicit Handle(std::shared_ptr<StepCostModel> model) : model_(std::move(model)) {}

  StepCost price(const StepShape& shape, Heat heat) override { return model_->price(shape, heat); }
  DecodeStep decode_step(std::int64_t seqs, std::int64_t context, const SharedContext& shared,
                         Heat& heat) override {
    return model_->decode_step(seqs, context, shared, heat);
  }
  bool decode_step_is_constant() const override { return model_->decode_step_is_constant(); }
  AttentionWork decode_attention_work() const override { return model_->decode_attention_work(); }
  Heat next_heat(Heat heat, double compute_bound_s, SimTime elapsed) const override {
    return model_->next_heat(heat, compute_bound_s, elapsed);
  }
  double peak_flops() const override { return model_->peak_flops(); }
  double peak_bytes_per_s() const override { return model_->peak_bytes_per_s(); }

 private:
  std::shared_ptr<StepCostModel> model_;
};

/// The models of one thread, most recently used first.
std::shared_ptr<StepCostModel> instance(const MakeCostModel& make, const std::string& key) {
  constexpr std::size_t kKept = 8;
  thread_local std::list<std::pair<std::string, std::shared_ptr<StepCostModel>>> kept;
  const auto found = std::find_if(kept.begin(), kept.end(),
                                  [&key](const auto& entry) { return entry.first == key; });
  if (found != kept.end()) {
    kept.splice(kept.begin(), kept, found);
  } else {
    kept.emplace_front(key, make());
    if (kept.size() > kKept) kept.pop_back();
  }
  return kept.front().second;
}

}  // namespace

MakeCostModel share_cost_model(MakeCostModel make, std::string key) {
  return [make = std::move(make), key = std::move(key)]() -> std::unique_ptr<StepCostModel> {
    return std::make_unique<Handle>(instance(make, key));
  };
}

}  // namespace servesim
