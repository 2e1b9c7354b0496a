#include "cost/kv_moves.hpp"

namespace servesim {

KvMoveCosts kv_move_costs(const ModelSpec& model, const HardwareSpec& hardware,
                          const DeploymentSpec& deployment) {
  KvMoveCosts costs;
  costs.bytes_per_token =
      model.kv_bytes_per_token_per_rank(deployment.kv, deployment.tensor_parallel);
  costs.hbm_bytes_per_s =
      hardware.hbm_bytes_per_s *
      hardware.kernels_of(deployment.kernels).decode_attention.bandwidth_efficiency;
  costs.host_bytes_per_s = hardware.pcie_bytes_per_s * hardware.pcie_efficiency;
  costs.overlaps_compute = hardware.pcie_overlaps_compute;
  return costs;
}

}  // namespace servesim
