// How a memory budget is told to people: its arithmetic, and what would make it fit.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "core/error.hpp"
#include "cost/memory_budget.hpp"
#include "hardware/hardware_loader.hpp"

namespace servesim {
namespace {

std::string gb(double bytes) {
  return fmt::format("{:.2f} GB", bytes * 1e-9);
}

bool would_fit(const ModelSpec& model, const HardwareSpec& hardware, const MemoryOptions& options) {
  try {
    return memory_budget(model, hardware, options).fits();
  } catch (const InputError&) {
    return false;  // cannot be sharded like that
  }
}

/// The smallest change of each kind that makes the model fit, as flags.
std::vector<std::string> remedies(const ModelSpec& model, const HardwareSpec& hardware,
                                  const MemoryOptions& options) {
  std::vector<std::string> flags;
  MemoryOptions changed = options;
  for (const double utilization : {0.92, 0.95, 0.98}) {
    changed.gpu_memory_utilization = utilization;
    if (utilization <= options.gpu_memory_utilization || !would_fit(model, hardware, changed))
      continue;
    flags.push_back(fmt::format("--gpu-memory-utilization {}", utilization));
    break;
  }
  changed = options;
  for (const std::int64_t tp : {2, 4, 8}) {
    changed.tensor_parallel = tp;
    if (tp <= options.tensor_parallel || !would_fit(model, hardware, changed)) continue;
    flags.push_back(fmt::format("--tensor-parallel-size {}", tp));
    break;
  }
  changed = options;
  constexpr std::array kFormats{std::pair{WeightFormat::kFp8, "fp8"},
                                std::pair{WeightFormat::kInt4, "int4"}};
  for (const auto& [format, name] : kFormats) {
    changed.weights = format;
    if (bytes_per_weight(format) >= bytes_per_weight(options.weights)) continue;
    if (!would_fit(model, hardware, changed)) continue;
    flags.push_back(fmt::format("--quantization {}", name));
    break;
  }
  for (const std::string& name : hardware_names()) {
    const HardwareSpec other = load_hardware(name);
    if (other.memory_bytes <= hardware.memory_bytes || !would_fit(model, other, options)) continue;
    flags.push_back(fmt::format("--hardware {}", name));
    break;
  }
  return flags;
}

std::string remedy_sentence(const std::vector<std::string>& flags) {
  if (flags.empty()) return "no single change of TP, quantization, utilization or GPU makes it fit";
  return fmt::format("it would fit with {}", fmt::join(flags, ", or "));
}

}  // namespace

std::vector<std::string> MemoryBudget::describe() const {
  return {fmt::format("memory                {:>10}", gb(memory_bytes)),
          fmt::format("x utilization         {:>10}", gb(requested_bytes)),
          fmt::format("- weights             {:>10}", gb(weight_bytes)),
          fmt::format("- activation peak     {:>10}", gb(activation_bytes)),
          fmt::format("- context and graphs  {:>10}", gb(overhead_bytes)),
          fmt::format("= KV cache            {:>10}", gb(available_bytes)),
          fmt::format("/ ({:.0f} B per token x {} tokens per block) = {} blocks, {} tokens",
                      kv_bytes_per_token, block_size, num_gpu_blocks, capacity_tokens)};
}

MemoryBudget require_memory_budget(const ModelSpec& model, const HardwareSpec& hardware,
                                   const MemoryOptions& options) {
  const MemoryBudget budget = memory_budget(model, hardware, options);
  if (budget.fits()) return budget;
  const std::string arithmetic =
      fmt::format("{} of {} less weights {}, activations {}, context and graphs {}",
                  gb(budget.requested_bytes), gb(budget.memory_bytes), gb(budget.weight_bytes),
                  gb(budget.activation_bytes), gb(budget.overhead_bytes));
  const std::string remedy = remedy_sentence(remedies(model, hardware, options));
  if (budget.num_gpu_blocks <= 0) {
    throw InputError(fmt::format("{} does not fit on {}: {} leaves {} for the KV cache; {}",
                                 model.name, hardware.name, arithmetic, gb(budget.available_bytes),
                                 remedy));
  }
  throw InputError(fmt::format(
      "{} on {}: the KV cache holds {} tokens ({} leaves {}), fewer than one request of "
      "max-model-len "
      "{}; decrease --max-model-len to at most {}, or raise --gpu-memory-utilization; {}",
      model.name, hardware.name, budget.capacity_tokens, arithmetic, gb(budget.available_bytes),
      budget.max_model_len, budget.capacity_tokens, remedy));
}

}  // namespace servesim
