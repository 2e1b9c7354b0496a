#include "opening.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "environment.hpp"
#include "text.hpp"

namespace servesim::calibrate::cuda {

void require_device(const Findings& found, int device) {
  if (found.driver_too_old && found.driver > 0) {
    throw InputError(print_to_string(
        "the driver is too old: it supports CUDA %s, calibrate was built with CUDA %s; update the "
        "driver or build with an older toolkit",
        cuda_version_text(found.driver).c_str(), cuda_version_text(found.runtime).c_str()));
  }
  if (found.devices == 0) {
    throw InputError(
        "no GPU was found (no NVIDIA driver, or no device it may use); --backend cpu measures this "
        "machine's cores");
  }
  if (device >= found.devices) {
    throw InputError(
        print_to_string("--device %d: GPUs found: %d, counted from 0", device, found.devices));
  }
}

void require_capability(const std::string& name, int major, int minor) {
  if (major >= 8) return;
  throw InputError(print_to_string("%s has compute capability %d.%d; 8.0 and later are measured",
                                   name.c_str(), major, minor));
}

std::int64_t region_bytes(double free_bytes, double l2_bytes) {
  constexpr double kRegions = 7;  // six types and the results
  constexpr double kShare = 0.75, kMiB = 1 << 20, kGiB = 1 << 30, kMost = 2 * kGiB;
  const double least = std::max(256 * kMiB, 4 * l2_bytes);
  const double room = kShare * free_bytes / kRegions;
  if (room < least) {
    throw InputError(print_to_string(
        "not enough GPU memory: %.1f GiB are free, %.1f GiB are needed; end what else uses the GPU",
        free_bytes / kGiB, kRegions * least / kShare / kGiB));
  }
  return static_cast<std::int64_t>(std::min(room, std::max(kMost, least)) / kMiB) << 20;
}

}  // namespace servesim::calibrate::cuda
