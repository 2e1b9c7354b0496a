#include "cli/kv_offload.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/units.hpp"

namespace servesim {
namespace {

/// Sequential rates of a data-centre NVMe drive (Samsung PM9A3 datasheet, U.2 3.84 TB: 6,900 and
/// 4,100 MB/s); assumed where no rate is given.
constexpr double kNvmeReadBytesPerS = 6.9e9;
constexpr double kNvmeWriteBytesPerS = 4.1e9;

struct Rates {
  double read, write;  ///< bytes/s
};

[[noreturn]] void refuse(const std::string& text, const std::string& why) {
  throw InputError(fmt::format(
      "--kv-offload {}: {}; accepted: cpu:SIZE and nvme:SIZE in this order, joined by a "
      "comma, SIZE as in 64GiB, each with @RATE as in @7GB/s if its rate is another",
      text, why));
}

Rates parse_rate(const std::string& text, const std::string& rate) {
  const std::size_t slash = rate.rfind("/s");
  if (slash == std::string::npos || slash + 2 != rate.size()) {
    refuse(text, fmt::format("'{}' is not a rate", rate));
  }
  const auto bytes = static_cast<double>(
      parse_bytes(rate.substr(0, slash), fmt::format("--kv-offload {}: rate", text)));
  return {bytes, bytes};
}

Rates default_rates(const std::string& text, const std::string& tier, const KvMoveCosts& moves,
                    double gpus) {
  if (tier == "nvme") return {kNvmeReadBytesPerS, kNvmeWriteBytesPerS};
  if (moves.host_bytes_per_s <= 0) refuse(text, "the hardware profile has no pcie rate");
  return {moves.host_bytes_per_s * gpus, moves.host_bytes_per_s * gpus};
}

TierSpec parse_tier(const std::string& text, const std::string& item, const KvMoveCosts& moves,
                    double gpus, double block_bytes) {
  const std::size_t colon = item.find(':');
  if (colon == std::string::npos) refuse(text, fmt::format("'{}' has no size", item));
  const std::size_t at = item.find('@', colon);
  const std::string name = item.substr(0, colon);
  if (name != "cpu" && name != "nvme") refuse(text, fmt::format("unknown tier '{}'", name));
  const std::string size = item.substr(colon + 1, at == std::string::npos ? at : at - colon - 1);
  const auto bytes =
      static_cast<double>(parse_bytes(size, fmt::format("--kv-offload {}: {}", text, name)));
  const Rates rates = at == std::string::npos ? default_rates(text, name, moves, gpus)
                                              : parse_rate(text, item.substr(at + 1));
  const auto blocks = static_cast<std::int64_t>(bytes / block_bytes);
  if (blocks == 0) {
    refuse(text, fmt::format("{} holds no block of {:.0f} bytes", name, block_bytes));
  }
  return {name, blocks, block_bytes / rates.read, block_bytes / rates.write};
}

}  // namespace

std::vector<TierSpec> parse_kv_offload(const std::string& text, const KvMoveCosts& moves,
                                       std::int64_t gpus, std::int64_t block_size) {
  const auto ranks = static_cast<double>(gpus);
  const double block_bytes = moves.bytes_per_token * ranks * static_cast<double>(block_size);
  std::vector<TierSpec> tiers;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    tiers.push_back(parse_tier(text, text.substr(begin, end - begin), moves, ranks, block_bytes));
    begin = end + 1;
  }
  const bool in_order =
      tiers.size() == 1 || (tiers.size() == 2 && tiers[0].name == "cpu" && tiers[1].name == "nvme");
  if (!in_order) refuse(text, "tiers overflow downwards, cpu into nvme");
  return tiers;
}

}  // namespace servesim
