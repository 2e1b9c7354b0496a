/// What it costs to move KV: within HBM, and between HBM and the host.
#pragma once

#include <cstdint>

#include "cost/deployment.hpp"
#include "hardware/hardware_spec.hpp"
#include "model/model_spec.hpp"

namespace servesim {

/// Rates of one GPU; those of a tensor-parallel group move their shares side by side. Rates of 0:
/// moving costs nothing, as in runs without a GPU.
struct KvMoveCosts {
  double bytes_per_token = 0;     ///< on one GPU
  double hbm_bytes_per_s = 0;     ///< reads and writes of a copy within HBM
  double host_bytes_per_s = 0;    ///< host link, each direction
  bool overlaps_compute = false;  ///< transfers run beside the step's kernels, not before them

  /// Seconds of `tokens` slots over the host link, one way.
  double host_seconds(std::int64_t tokens) const {
    return seconds(static_cast<double>(tokens), host_bytes_per_s);
  }
  /// Seconds of copying `tokens` slots within HBM: read and written.
  double copy_seconds(std::int64_t tokens) const {
    return seconds(2 * static_cast<double>(tokens), hbm_bytes_per_s);
  }

 private:
  double seconds(double tokens, double rate) const {
    return rate > 0 ? tokens * bytes_per_token / rate : 0;
  }
};

/// HBM copies stream at the share of the datasheet rate that decode attention was fitted at; host
/// copies at what pinned memory reaches of the link (HardwareSpec::pcie_efficiency).
KvMoveCosts kv_move_costs(const ModelSpec& model, const HardwareSpec& hardware,
                          const DeploymentSpec& deployment);

}  // namespace servesim
