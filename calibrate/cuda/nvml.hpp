/// The driver's management library, opened at run time: without it clocks and power are unknown.
#pragma once

#include <memory>
#include <string>

#include "environment.hpp"

namespace servesim::calibrate::cuda {

class Nvml {
 public:
  /// Of the GPU at PCI address `bus_id`. Never throws: what cannot be asked stays unknown.
  explicit Nvml(const std::string& bus_id);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  void describe(Environment& e) const;
  PowerSample sample() const;

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

}  // namespace servesim::calibrate::cuda
