// What makes a deployment fit that does not, kind by kind.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "core/error.hpp"
#include "cost/deployment_size.hpp"

namespace servesim {
namespace {

/// A candidate of one kind of change; the smallest change first.
struct Candidate {
  std::string flags;
  ModelSpec model;
  SizeQuery query;
};

constexpr std::array kWeightFormats{std::pair{WeightFormat::kFp8, "fp8"},
                                    std::pair{WeightFormat::kInt4, "int4"}};
constexpr std::array kKvFormats{std::pair{KvFormat::kFp8, "fp8"},
                                std::pair{KvFormat::kInt4, "int4"}};

std::vector<Candidate> quantised_weights(const ModelSpec& model, const SizeQuery& query) {
  std::vector<Candidate> all;
  for (const auto& [format, name] : kWeightFormats) {
    if (bytes_per_weight(format) >= bytes_per_weight(query.memory.weights)) continue;
    all.push_back({fmt::format("--quantization {}", name), model, query});
    all.back().query.memory.weights = format;
  }
  return all;
}

std::vector<Candidate> quantised_kv(const ModelSpec& model, const SizeQuery& query) {
  std::vector<Candidate> all;
  for (const auto& [format, name] : kKvFormats) {
    const double head_dim = static_cast<double>(model.head_dim);
    if (bytes_per_element(format, head_dim) >= bytes_per_element(query.memory.kv, head_dim))
      continue;
    all.push_back({fmt::format("--kv-cache-dtype {}", name), model, query});
    all.back().query.memory.kv = format;
  }
  return all;
}

std::vector<Candidate> fewer_kv_heads(const ModelSpec& model, const SizeQuery& query) {
  std::vector<Candidate> all;
  if (model.mla) return all;
  for (std::int64_t heads = model.kv_heads - 1; heads >= 1; --heads) {
    if (model.heads % heads != 0) continue;
    all.push_back({fmt::format("--num-kv-heads {}", heads), model, query});
    all.back().model.override_kv_heads(heads);
  }
  return all;
}

std::vector<Candidate> more_gpus(const ModelSpec& model, const SizeQuery& query) {
  constexpr std::array<std::int64_t, 4> kSizes{2, 4, 8, 16};
  std::vector<Candidate> all;
  for (const std::int64_t gpus : kSizes) {
    if (gpus <= query.memory.tensor_parallel) continue;
    all.push_back({fmt::format("--tensor-parallel-size {}", gpus), model, query});
    all.back().query.memory.tensor_parallel = gpus;
  }
  return all;
}

std::vector<Candidate> quantised_both(const ModelSpec& model, const SizeQuery& query) {
  std::vector<Candidate> all;
  for (const Candidate& weights : quantised_weights(model, query)) {
    for (Candidate& both : quantised_kv(model, weights.query)) {
      both.flags = weights.flags + " " + both.flags;
      all.push_back(std::move(both));
    }
  }
  return all;
}

SizeChange changed(std::string change, std::string flags, const DeploymentSize& size) {
  return {
      std::move(change), std::move(flags), size.weight_bytes, size.kv_bytes,     size.total_bytes,
      size.usable_bytes, size.fits(),      size.max_batch,    size.step_floor_s, 0};
}

/// The first candidate that fits, else the last that can be sharded as asked.
std::optional<SizeChange> best_of(const char* change, const HardwareSpec& hardware,
                                  const std::vector<Candidate>& candidates) {
  std::optional<SizeChange> best;
  for (const Candidate& candidate : candidates) {
    try {
      best = changed(change, candidate.flags,
                     size_deployment(candidate.model, hardware, candidate.query));
    } catch (const InputError&) {
      continue;  // cannot be sharded like that
    }
    if (best->fits) break;
  }
  return best;
}

/// Weights beyond what fits stay in host memory and cross PCIe in every step. KV that does not fit
/// even without weights cannot be helped that way.
SizeChange offloaded(const HardwareSpec& hardware, const SizeQuery& query,
                     const DeploymentSize& size) {
  const double gpus = static_cast<double>(query.memory.tensor_parallel);
  const double moved = std::min(size.total_bytes - size.usable_bytes, size.weight_bytes);
  SizeChange change =
      changed("offload weights",
              fmt::format("vLLM: --cpu-offload-gb {:.1f}", moved / gpus / (1 << 30)), size);
  change.weight_bytes -= moved;
  change.total_bytes -= moved;
  // Equal up to rounding when the excess is what moves.
  change.fits = size.total_bytes - size.usable_bytes <= size.weight_bytes;
  change.max_batch = change.fits ? query.batch : 0;
  change.host_bytes = moved;
  change.step_floor_s += moved / (gpus * hardware.pcie_bytes_per_s);
  return change;
}

}  // namespace

std::vector<SizeChange> what_first(const ModelSpec& model, const HardwareSpec& hardware,
                                   const SizeQuery& query) {
  const DeploymentSize size = size_deployment(model, hardware, query);
  if (size.fits()) return {};
  std::vector<SizeChange> all;
  const auto add = [&](const char* change, const std::vector<Candidate>& candidates) {
    if (auto best = best_of(change, hardware, candidates)) all.push_back(std::move(*best));
  };
  add("quantise weights", quantised_weights(model, query));
  add("quantise KV", quantised_kv(model, query));
  add("fewer KV heads", fewer_kv_heads(model, query));
  add("shard", more_gpus(model, query));
  const bool one_is_enough =
      std::any_of(all.begin(), all.end(), [](const SizeChange& change) { return change.fits; });
  if (!one_is_enough) add("quantise both", quantised_both(model, query));
  all.push_back(offloaded(hardware, query, size));
  std::stable_partition(all.begin(), all.end(),
                        [](const SizeChange& change) { return change.fits; });
  return all;
}

}  // namespace servesim
