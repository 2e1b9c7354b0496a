/// What a measurement leaves in its folder.
#pragma once

#include <string>

#include "environment.hpp"
#include "host_bench.hpp"
#include "runner.hpp"

namespace servesim::calibrate {

/// Tables with the columns of the published ones (measured/ of servesim's shared data), and
/// timings.csv, which has every case with its spread. Each returns the whole file.
std::string gemm_csv(const Measurement& m, const Environment& e, Kernel kernel);
std::string decode_csv(const Measurement& m, const Environment& e);
std::string prefill_csv(const Measurement& m, const Environment& e);
std::string collectives_csv(const Measurement& m, const Environment& e);
std::string elementwise_csv(const Measurement& m, const Environment& e);
std::string micro_csv(const Measurement& m, const Environment& e, const HostTimes& host);
std::string timings_csv(const Measurement& m);
std::string sustained_csv(const Measurement& m);
/// What was left out and why, by the case.
std::string left_out_csv(const Measurement& m);

/// Makes the folder of the results. Throws InputError when it cannot be made or written to.
void make_folder(const std::string& folder);

/// Writes all of them and environment.json into `folder`, which is made where it is not there.
/// Throws InputError.
void write_measurement(const std::string& folder, const Measurement& m, const Environment& e,
                       const HostTimes& host);

}  // namespace servesim::calibrate
