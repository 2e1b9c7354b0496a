/// Published kernel timings, and what the kernel forms say of them: what calibration fits and
/// validation checks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cost/kernel_forms.hpp"
#include "hardware/hardware_spec.hpp"

namespace servesim {

/// Which software a row was measured with.
enum class MeasuredEngine : std::uint8_t { kVllm, kTensorRtLlm, kNccl };

/// A timed GEMM. 8-bit rows include the quantisation of the activations, as both engines run it.
struct MeasuredGemm {
  MeasuredEngine engine;
  bool eight_bit = false;
  GemmShape shape;
  double us = 0;
  bool int8 = false;  ///< of the 8-bit ones
};

/// Decode attention of one layer, timed in a CUDA graph that repeats it: small KV stays in L2.
struct MeasuredDecode {
  MeasuredEngine engine;
  bool eight_bit_kv = false;
  double batch = 0, context = 0, q_heads = 0, kv_heads = 0, head_dim = 0;
  double us = 0;
};

/// Prefill attention of one layer: `batch` equal prompts.
struct MeasuredPrefill {
  MeasuredEngine engine;
  bool eight_bit_kv = false;
  double batch = 0, tokens = 0, past = 0, q_heads = 0, kv_heads = 0, head_dim = 0;
  double us = 0;
};

/// An all-reduce. Rows timed with launches (eager) and other operations are left out.
struct MeasuredAllReduce {
  MeasuredEngine engine;
  std::int64_t gpus = 0;
  double bytes = 0;
  double us = 0;
};

/// Rows of `path` whose gpu begins with `gpu` (case ignored; "" takes all), for the engines and
/// data types that are modelled: bf16, fp16 and fp8 per tensor or row; block-scaled fp8 is not.
/// Throws InputError for missing columns and numbers that are none or out of range.
std::vector<MeasuredGemm> read_gemms(const std::string& path, const std::string& gpu);
std::vector<MeasuredDecode> read_decodes(const std::string& path, const std::string& gpu);
std::vector<MeasuredPrefill> read_prefills(const std::string& path, const std::string& gpu);
std::vector<MeasuredAllReduce> read_all_reduces(const std::string& path, const std::string& gpu);

/// Times in the benchmark, in microseconds: the benchmark heats itself (the longer the kernel, the
/// hotter, half hot at benchmark_us), and its KV may sit in L2. `machine` has the peak of the row's
/// data type.
double predict_us(const GemmParameters& p, const MachineRates& machine, const MeasuredGemm& row);
double predict_us(const DecodeAttentionParameters& p, const MachineRates& machine,
                  const MeasuredDecode& row);
double predict_us(const PrefillAttentionParameters& p, const MachineRates& machine,
                  const MeasuredPrefill& row);

/// The same from a whole profile; a vLLM prefill of one token is its decode kernel.
double predict_us(const HardwareSpec& hardware, const MeasuredGemm& row);
double predict_us(const HardwareSpec& hardware, const MeasuredDecode& row);
double predict_us(const HardwareSpec& hardware, const MeasuredPrefill& row);
double predict_us(const HardwareSpec& hardware, const MeasuredAllReduce& row);

/// A vLLM prefill of one token as the decode step it is.
MeasuredDecode as_decode(const MeasuredPrefill& row);
inline bool is_decode(const MeasuredPrefill& row) {
  return row.engine == MeasuredEngine::kVllm && row.tokens <= 1;
}

}  // namespace servesim
