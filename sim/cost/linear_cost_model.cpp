#include "cost/linear_cost_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/error.hpp"
#include "core/units.hpp"

namespace servesim {
namespace {

constexpr double kMostUs = 1e12;

SimTime whole_ns(double us, std::string_view what) {
  if (!(us >= 0 && us <= kMostUs)) {
    throw InputError(fmt::format("step-time linear: {} = {} is out of range; accepted: 0 to {}",
                                 what, us, kMostUs));
  }
  return SimTime(std::llround(us * 1000));
}

}  // namespace

LinearCostModel::LinearCostModel(double base_us, double per_token_us, std::int64_t stages)
    : base_(whole_ns(base_us, "base_us")),
      per_token_(whole_ns(per_token_us, "per_token_us")),
      split_(stages, stages) {
  if (base_ + per_token_ == SimTime()) {
    throw InputError(
        "step-time linear: base_us and per_token_us are both 0; a step must take time");
  }
}

StepCost LinearCostModel::cost_of(std::int64_t tokens) const {
  StepCost cost;
  if (tokens == 0) return cost;
  cost.total = base_ + per_token_ * tokens;
  cost.seconds[static_cast<std::size_t>(Component::kOther)] = cost.total.seconds();
  return cost;
}

StepCost LinearCostModel::price(const StepShape& shape, Heat) {
  return cost_of(shape.tokens());
}

DecodeStep LinearCostModel::decode_step(std::int64_t seqs, std::int64_t, const SharedContext&,
                                        Heat& heat) {
  const auto index = static_cast<std::size_t>(seqs);
  if (index >= decode_.size()) decode_.resize(std::max(index + 1, 2 * decode_.size()));
  if (!decode_[index]) decode_[index] = std::make_unique<StepCost>(cost_of(seqs));
  heat = next_heat(heat, 0, decode_[index]->total);
  return DecodeStep{decode_[index]->total, 0, decode_[index].get()};
}

Heat LinearCostModel::next_heat(Heat, double, SimTime) const {
  return Heat{};
}

LinearCostModel parse_linear_cost_model(std::string_view text) {
  constexpr std::string_view kPrefix = "linear:";
  const auto refuse = [&](std::string_view why) {
    return InputError(fmt::format("step-time '{}': {}; accepted: linear:base_us=B,per_token_us=P",
                                  text.substr(0, 200), why));
  };
  if (!text.starts_with(kPrefix)) throw refuse("is not a linear step time");
  std::optional<double> base_us;
  std::optional<double> per_token_us;
  std::string_view rest = text.substr(kPrefix.size());
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    const std::size_t equals = item.find('=');
    const std::string_view key = item.substr(0, equals);
    std::optional<double>* const slot = key == "base_us"        ? &base_us
                                        : key == "per_token_us" ? &per_token_us
                                                                : nullptr;
    if (slot == nullptr) throw refuse(fmt::format("unknown key '{}'", key));
    if (slot->has_value()) throw refuse(fmt::format("{} is given twice", key));
    if (equals == std::string_view::npos) throw refuse(fmt::format("{} has no value", key));
    *slot = parse_number(item.substr(equals + 1), fmt::format("step-time linear: {}", key));
  }
  if (!base_us) throw refuse("base_us is missing");
  if (!per_token_us) throw refuse("per_token_us is missing");
  return LinearCostModel(*base_us, *per_token_us);
}

}  // namespace servesim
