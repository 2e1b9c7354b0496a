/// The --gpu-hour-cost flag.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/resolve.hpp"

namespace servesim {

/// Dollars per GPU and hour, for all GPUs or by name.
class GpuHourCost {
 public:
  /// Words as given: one number, or NAME:X for each GPU that is used. Throws InputError for what is
  /// neither, for a price below 0 and for names given twice.
  explicit GpuHourCost(const std::vector<std::string>& words);

  /// The price of `hardware`; nothing when no price was given at all. Throws InputError when there
  /// are prices, but none for it.
  std::optional<double> of(const std::string& hardware) const;
  /// Throws InputError when a GPU has a price and none of `runs` uses it.
  void check_used(const std::vector<const ResolvedRun*>& runs) const;
  /// The mean price of the GPUs of `run`, whose pools may have different ones.
  std::optional<double> of(const ResolvedRun& run) const;

 private:
  std::optional<double> any_;
  std::map<std::string, double> by_name_;
};

}  // namespace servesim
