// Kernel forms against the public tables of kernel timings.
#include <filesystem>

#include "cost/kernel_errors.hpp"
#include "hardware/hardware_loader.hpp"
#include "validation/sections.hpp"

namespace servesim {
namespace {

constexpr double kRegimeBar = 0.15;
/// Regimes with fewer rows say nothing.
constexpr std::size_t kFewestRows = 5;

double bar_of(const std::string& kernel) {
  if (kernel.starts_with("gemm")) return 0.07;
  if (kernel.starts_with("attention_decode")) return 0.06;
  if (kernel.starts_with("attention_prefill")) return 0.08;
  return 0.09;
}

void check_gpu(const std::string& profile, const std::string& gpu, const KernelTables& tables,
               ValidationReport& report) {
  const std::vector<KernelError> errors = kernel_errors(load_hardware(profile), tables, gpu);
  for (const ErrorMean& mean : error_means(errors, ErrorGroup::kKernelAndType)) {
    report.summarise("kernels", profile + " " + mean.name, "MAPE", mean.mape, bar_of(mean.name));
  }
  for (const ErrorMean& mean : error_means(errors, ErrorGroup::kEngine)) {
    report.summarise("kernels", profile + " " + mean.name, "MAPE", mean.mape, std::nullopt);
  }
  for (const ErrorMean& mean : error_means(errors, ErrorGroup::kDecade)) {
    report.summarise("kernels", profile + " " + mean.name, "MAPE", mean.mape,
                     mean.rows >= kFewestRows ? std::optional(kRegimeBar) : std::nullopt);
  }
  for (const KernelError& error : errors) {
    report.points.push_back({"kernels", error.kernel, error.measured_us, error.predicted_us});
  }
}

}  // namespace

void check_kernels(const std::string& data_dir, ValidationReport& report) {
  const auto table = [&](const char* name) {
    const std::string path = data_dir + "/public_" + name + ".csv";
    if (std::filesystem::exists(path)) return path;
    report.skipped.push_back("kernels: " + path + " is not there");
    return std::string();
  };
  const KernelTables tables{table("gemm"), table("attention_decode"), table("attention_prefill"),
                            table("collectives")};
  check_gpu("h100-sxm", "h100-sxm", tables, report);
  check_gpu("a100-sxm-80g", "a100-sxm", tables, report);
}

}  // namespace servesim
