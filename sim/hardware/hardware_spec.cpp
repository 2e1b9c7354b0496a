#include "hardware/hardware_spec.hpp"

#include <fmt/format.h>

#include "core/error.hpp"

namespace servesim {

const AllReduceParameters& HardwareSpec::all_reduce_for(std::int64_t n, KernelFamily family) const {
  const auto& all_reduce = kernels_of(family).all_reduce;
  const auto found = all_reduce.lower_bound(n);
  if (found == all_reduce.end()) {
    throw InputError(fmt::format(
        "tensor-parallel-size {}: the profile of {} has all-reduce times for at most {} GPUs", n,
        name, all_reduce.empty() ? 1 : all_reduce.rbegin()->first));
  }
  return found->second;
}

}  // namespace servesim
