#include "cost/shared_cost_model.hpp"

#include <algorithm>
#include <list>
#include <utility>

namespace servesim {
namespace {

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
  return [make = std::move(make), key = std::move(key)] { return instance(make, key); };
}

}  // namespace servesim
