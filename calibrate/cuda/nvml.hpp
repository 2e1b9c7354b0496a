/// The driver's management library, opened at run time: without it clocks and power are unknown.
#pragma once

#include <memory>
#include <string>

#include "environment.hpp"

namespace servesim::calibrate::cuda {

/// Questions about one GPU. Never throws: what cannot be asked stays unknown.
class Nvml {
 public:
  /// Of the GPU at PCI address `bus_id`.
  explicit Nvml(const std::string& bus_id, const char* file = "libnvidia-ml.so.1");
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  /// Clocks, limits, ECC, MIG, and who else uses the GPU. Processes are counted but for this one;
  /// in a container its number there is not the driver's: ask before the GPU is opened.
  void describe(Environment& e) const;
  /// Clocks and power now.
  PowerSample sample() const;

 private:
  void describe_users(Environment& e) const;

  struct Library;
  std::unique_ptr<Library> library_;
};

}  // namespace servesim::calibrate::cuda
