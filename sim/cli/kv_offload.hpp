/// The tiers of `--kv-offload`.
#pragma once

#include <string>
#include <vector>

#include "cost/kv_moves.hpp"
#include "kv/offload_tiers.hpp"

namespace servesim {

/// Tiers from "cpu:64GiB,nvme:1TiB@7GB/s": `cpu`, `nvme` or both in this order, each with the bytes
/// it holds for one engine and, after @, its rate in both directions. Without a rate `cpu` moves at
/// the host links of the `gpus` GPUs side by side, and `nvme` at that of one drive. Throws
/// InputError for unknown tiers, units and sizes that hold no block.
std::vector<TierSpec> parse_kv_offload(const std::string& text, const KvMoveCosts& moves,
                                       std::int64_t gpus, std::int64_t block_size);

}  // namespace servesim
