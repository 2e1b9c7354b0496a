#include "cost/pipeline_split.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"

namespace servesim {

std::vector<std::int64_t> stage_layers(std::int64_t layers, std::int64_t stages) {
  if (stages < 1 || stages > layers) {
    throw InputError(
        fmt::format("pipeline-parallel-size {} is out of range; accepted: 1 to {}, the number of "
                    "layers",
                    stages, layers));
  }
  std::vector<std::int64_t> result(static_cast<std::size_t>(stages), layers / stages);
  const auto left = static_cast<std::size_t>(layers % stages);
  for (std::size_t i = 0; i < left; ++i) ++result[result.size() - 2 - i];
  return result;
}

PipelineSplit::PipelineSplit(std::int64_t layers, std::int64_t stages) {
  for (const std::int64_t n : stage_layers(layers, stages)) {
    shares_.push_back(static_cast<double>(n) / static_cast<double>(layers));
  }
  times_.resize(shares_.size());
}

std::span<const SimTime> PipelineSplit::operator()(const StepCost& cost) {
  const auto seconds = [&cost](Component part) {
    return cost.seconds[static_cast<std::size_t>(part)];
  };
  double all = 0;
  for (const double part : cost.seconds) all += part;
  const double last =
      seconds(Component::kLmHead) + seconds(Component::kSampling) + seconds(Component::kDraft);
  const double sends = seconds(Component::kPipelineSend);
  const double layers = all - last - sends;
  const double hand_over = sends / std::max(1.0, static_cast<double>(stages() - 1));
  double end_s = 0;
  SimTime begin;
  for (std::size_t i = 0; i + 1 < times_.size(); ++i) {
    end_s += shares_[i] * layers + hand_over;
    const SimTime end = std::min(SimTime::from_seconds(end_s), cost.total);
    times_[i] = end - begin;
    begin = end;
  }
  times_.back() = cost.total - begin;
  return times_;
}

}  // namespace servesim
