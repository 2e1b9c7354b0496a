/// From a folder that `calibrate measure` wrote to a hardware profile.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "environment.hpp"
#include "fit_kernels.hpp"
#include "kernel_case.hpp"
#include "profile_json.hpp"
#include "statistics.hpp"

namespace servesim::calibrate {

/// A line of timings.csv.
struct TimedCase {
  Case c;
  double us = 0;
};

/// Throws InputError for a file that is none of ours, with line and column.
std::vector<TimedCase> read_timings(const std::string& path);
/// Throws InputError for a file that is none of ours.
Environment read_environment(const std::string& path);
/// Of sustained.csv, fitted.
Sustained read_sustained(const std::string& path);

/// The best rate among the `kernel` timings: bytes/s, or FLOP/s for what computes. 0 without any.
double best_bytes_per_s(const std::vector<TimedCase>& timings, Kernel kernel);
double best_flops_per_s(const std::vector<TimedCase>& timings, Kernel kernel);

/// kernel_us + bytes/(efficiency * HBM) of the elementwise kernels.
struct ElementwiseFit {
  double kernel_us = 0;
  double bandwidth_efficiency = 1;
  double median_error = 0;
  std::size_t rows = 0;
};
/// Throws InputError for too few timings.
ElementwiseFit fit_elementwise(const std::vector<TimedCase>& timings, double bytes_per_s);

/// Nanoseconds a logit, softmax and the draw together: the slopes of both over rows x vocabulary.
/// Throws InputError for too few timings.
double sampling_ns_per_logit(const std::vector<TimedCase>& timings);

/// `t0 + bytes/rate + rows row_us`: each row of the weights ends with a reduction over lanes and a
/// store, which short rows show.
struct GemvForm {
  double t0_us = 0;
  double us_per_byte = 0;
  double row_us = 0;
  double at(const Case& c) const;
};

/// A GEMV type's form, and its median error on the shapes left out of a first fit.
struct GemvFit {
  std::string dtype;
  GemvForm form;
  double held_out_median = 0;
  std::vector<HeldOut> rows_held_out;
  std::size_t rows = 0;
};
/// Of every type with enough timings.
std::vector<GemvFit> fit_gemvs(const std::vector<TimedCase>& timings);

/// The file whose datasheet blocks a GPU's profile takes: `given`, a path or a shipped name, or the
/// shipped one of this GPU. Empty for a CPU, which needs none. Throws InputError when there is none
/// or it is no profile: asked before measuring, so that a run does not fail at its end.
std::string datasheet_of(const Environment& e, const std::string& given);

/// Blocks beside the kernels': of a CPU measured, of a GPU its datasheet's with what was measured
/// put in. `datasheet` as for datasheet_of().
nlohmann::ordered_json machine_blocks(const Environment& e, const std::vector<TimedCase>& timings,
                                      const Sustained& sustained, const std::string& folder,
                                      const std::string& datasheet);

/// All blocks of a profile file that are not kernels', in their order.
nlohmann::ordered_json blocks_beside_kernels(const std::string& path);

/// Which fits stand behind a block of a profile.
Provenance provenance(const std::string& block, const std::string& engine,
                      const std::vector<FitQuality>& qualities, const std::string& data_source);

}  // namespace servesim::calibrate
