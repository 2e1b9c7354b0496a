#include "fit_kernels.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "core/error.hpp"
#include "cost/kernels.hpp"
#include "statistics.hpp"

namespace servesim::calibrate {
namespace {

constexpr std::size_t kFewestRows = 10;

template <class Row, class Keep>
std::vector<Row> select(const std::vector<Row>& rows, Keep keep) {
  std::vector<Row> kept;
  for (const Row& row : rows) {
    if (keep(row)) kept.push_back(row);
  }
  return kept;
}

std::string shape_of(const MeasuredGemm& r) {
  return fmt::format("m={:.0f} n={:.0f} k={:.0f}", r.shape.m, r.shape.n, r.shape.k);
}
std::string shape_of(const MeasuredDecode& r) {
  return fmt::format("batch={:.0f} ctx={:.0f} heads={:.0f}/{:.0f}", r.batch, r.context, r.q_heads,
                     r.kv_heads);
}
std::string shape_of(const MeasuredPrefill& r) {
  return fmt::format("batch={:.0f} isl={:.0f} heads={:.0f}/{:.0f}", r.batch, r.tokens, r.q_heads,
                     r.kv_heads);
}
std::string shape_of(const MeasuredAllReduce& r) {
  return fmt::format("gpus={} bytes={:.0f}", r.gpus, r.bytes);
}

/// Fits once without the held-out rows and once with all of them.
class Fitter {
 public:
  Fitter(const FitOptions& options, const std::function<void(const FitQuality&)>& progress)
      : options_(options), progress_(progress) {}

  template <class Form, class Row>
  typename Form::Parameters fit(const std::string& name, const Form& form,
                                const std::vector<Row>& rows) {
    const std::vector<Row> train = select(rows, [](const Row& r) { return !is_held_out(r); });
    const std::vector<Row> held = select(rows, [](const Row& r) { return is_held_out(r); });
    const auto trained = form.fit(train, form.start(), options_.restarts, options_.steps);
    const auto final_fit = form.fit(rows, trained.point, options_.restarts / 2, options_.steps);
    FitQuality quality{name,
                       rows.size(),
                       mape(form, final_fit.parameters, rows),
                       mape(form, trained.parameters, held),
                       0,
                       {}};
    std::vector<double> errors;
    for (const Row& row : held) {
      const double predicted = form.predict(trained.parameters, row);
      errors.push_back(std::abs(predicted / row.us - 1));
      quality.rows_held_out.push_back({shape_of(row), predicted, row.us});
    }
    if (!errors.empty()) quality.held_out_median = median(errors);
    qualities_.push_back(quality);
    progress_(quality);
    return final_fit.parameters;
  }
  const std::vector<FitQuality>& qualities() const { return qualities_; }

 private:
  FitOptions options_;
  std::function<void(const FitQuality&)> progress_;
  std::vector<FitQuality> qualities_;
};

template <class Row>
void require_rows(const std::vector<Row>& rows, const std::string& path, const std::string& gpu) {
  if (rows.size() >= kFewestRows) return;
  throw InputError(fmt::format("{}: {} usable rows for gpu '{}'; at least {} are needed", path,
                               rows.size(), gpu, kFewestRows));
}

struct Sets {
  KernelSet vllm;
  KernelSet tensorrt_llm;
  bool has_tensorrt_llm = false;
};

void fit_gemms(Fitter& fitter, const HardwareSpec& hardware, const std::string& path,
               const std::string& gpu, const FitOptions& options, Sets& sets) {
  const auto rows = read_gemms(path, gpu);
  const auto plain = select(rows, [](const MeasuredGemm& r) { return !r.eight_bit; });
  require_rows(plain, path, gpu);
  const MachineRates rates = machine_rates(hardware, hardware.bf16_flops);
  const auto pair = fitter.fit(
      "gemm bf16", GemmForm{rates, options.tables, options.table_by_n, options.benchmark}, plain);
  sets.vllm.gemm = pair.vllm;
  sets.tensorrt_llm.gemm = pair.tensorrt_llm;
  // One block serves both 8-bit types: fp8 where the GPU has it, else int8.
  const std::optional<double> peak = hardware.fp8_flops ? hardware.fp8_flops : hardware.int8_flops;
  const bool int8 = !hardware.fp8_flops;
  const auto eight =
      select(rows, [int8](const MeasuredGemm& r) { return r.eight_bit && r.int8 == int8; });
  if (eight.size() < kFewestRows || !peak) return;
  const MachineRates fast = machine_rates(hardware, *peak);
  const auto pair8 = fitter.fit(
      int8 ? "gemm int8" : "gemm fp8",
      GemmForm{fast, options.tables, options.table_by_n, options.benchmark, pair}, eight);
  sets.vllm.gemm_8bit = pair8.vllm;
  sets.tensorrt_llm.gemm_8bit = pair8.tensorrt_llm;
}

void fit_decodes(Fitter& fitter, const HardwareSpec& hardware, const std::string& path,
                 const std::string& gpu, const Benchmark& benchmark, Sets& sets) {
  const auto all = read_decodes(path, gpu);
  require_rows(all, path, gpu);
  const DecodeForm form{machine_rates(hardware, hardware.bf16_flops), benchmark};
  const auto rows = [&](MeasuredEngine engine, bool eight) {
    return select(all, [=](const MeasuredDecode& r) {
      return r.engine == engine && r.eight_bit_kv == eight;
    });
  };
  const auto vllm = rows(MeasuredEngine::kVllm, false);
  require_rows(vllm, path, gpu);
  sets.vllm.decode_attention = fitter.fit("attention_decode bf16 vllm", form, vllm);
  sets.tensorrt_llm.decode_attention = sets.vllm.decode_attention;
  if (const auto r = rows(MeasuredEngine::kVllm, true); r.size() >= kFewestRows) {
    sets.vllm.decode_attention_8bit = fitter.fit("attention_decode fp8 vllm", form, r);
  }
  if (const auto r = rows(MeasuredEngine::kTensorRtLlm, false); r.size() >= kFewestRows) {
    sets.has_tensorrt_llm = true;
    sets.tensorrt_llm.decode_attention = fitter.fit("attention_decode bf16 tensorrt_llm", form, r);
  }
  if (const auto r = rows(MeasuredEngine::kTensorRtLlm, true); r.size() >= kFewestRows) {
    sets.tensorrt_llm.decode_attention_8bit =
        fitter.fit("attention_decode fp8 tensorrt_llm", form, r);
  }
}

/// Fits a prefill kernel that packs the query heads of a KV head into its tiles, or one that does
/// not: which, a short fit shows. The choice is part of the fit, so rows that are to be predicted
/// do not take part in it.
PrefillAttentionParameters fit_prefill(Fitter& fitter, const std::string& name,
                                       const MachineRates& rates, const Benchmark& benchmark,
                                       const std::vector<MeasuredPrefill>& rows) {
  const auto train = select(rows, [](const MeasuredPrefill& r) { return !is_held_out(r); });
  const auto error = [&](bool packs) {
    const PrefillForm form{rates, packs, benchmark};
    return mape(form, form.fit(train, form.start(), 3, 300).parameters, train);
  };
  const bool packs = error(true) <= error(false);
  return fitter.fit(name, PrefillForm{rates, packs, benchmark}, rows);
}

void fit_prefills(Fitter& fitter, const HardwareSpec& hardware, const std::string& path,
                  const std::string& gpu, const Benchmark& benchmark, Sets& sets) {
  const auto all =
      select(read_prefills(path, gpu), [](const MeasuredPrefill& r) { return !is_decode(r); });
  require_rows(all, path, gpu);
  const MachineRates rates = machine_rates(hardware, hardware.bf16_flops);
  const auto rows = [&](MeasuredEngine engine, bool eight) {
    return select(all, [=](const MeasuredPrefill& r) {
      return r.engine == engine && r.eight_bit_kv == eight;
    });
  };
  const auto vllm = rows(MeasuredEngine::kVllm, false);
  require_rows(vllm, path, gpu);
  sets.vllm.prefill_attention =
      fit_prefill(fitter, "attention_prefill bf16 vllm", rates, benchmark, vllm);
  sets.tensorrt_llm.prefill_attention = sets.vllm.prefill_attention;
  if (const auto r = rows(MeasuredEngine::kVllm, true); r.size() >= kFewestRows) {
    sets.vllm.prefill_attention_8bit =
        fit_prefill(fitter, "attention_prefill fp8 vllm", rates, benchmark, r);
  }
  if (const auto r = rows(MeasuredEngine::kTensorRtLlm, false); r.size() >= kFewestRows) {
    sets.tensorrt_llm.prefill_attention =
        fit_prefill(fitter, "attention_prefill bf16 tensorrt_llm", rates, benchmark, r);
  }
  if (const auto r = rows(MeasuredEngine::kTensorRtLlm, true); r.size() >= kFewestRows) {
    sets.tensorrt_llm.prefill_attention_8bit =
        fit_prefill(fitter, "attention_prefill fp8 tensorrt_llm", rates, benchmark, r);
  }
}

void fit_all_reduces(Fitter& fitter, const std::string& path, const std::string& gpu,
                     const Benchmark& benchmark, Sets& sets) {
  const auto all = read_all_reduces(path, gpu);
  if (!benchmark.own) require_rows(all, path, gpu);
  for (const std::int64_t gpus : {2, 4, 8, 16}) {
    const auto rows = [&](MeasuredEngine engine) {
      return select(
          all, [=](const MeasuredAllReduce& r) { return r.engine == engine && r.gpus == gpus; });
    };
    const auto nccl = rows(MeasuredEngine::kNccl);
    if (nccl.size() < kFewestRows) continue;
    const auto name = [gpus](const char* engine) {
      return fmt::format("all_reduce x{} {}", gpus, engine);
    };
    AllReduceParameters p;
    p.nccl = fitter.fit(name("nccl"), AlgorithmForm{}, nccl);
    for (const auto& [engine, set] :
         {std::pair{MeasuredEngine::kVllm, &sets.vllm},
          std::pair{MeasuredEngine::kTensorRtLlm, &sets.tensorrt_llm}}) {
      const auto own = rows(engine);
      const bool is_vllm = engine == MeasuredEngine::kVllm;
      set->all_reduce[gpus] =
          own.size() < kFewestRows
              ? (is_vllm ? p : sets.vllm.all_reduce[gpus])
              : fitter.fit(name(is_vllm ? "vllm" : "tensorrt_llm"), CappedForm{p.nccl}, own);
    }
  }
}

}  // namespace

std::vector<FitQuality> fit_kernels(HardwareSpec& hardware, const KernelTables& tables,
                                    const std::string& gpu, const FitOptions& options,
                                    const std::function<void(const FitQuality&)>& progress) {
  Fitter fitter(options, progress);
  Sets sets;
  fit_gemms(fitter, hardware, tables.gemm, gpu, options, sets);
  fit_decodes(fitter, hardware, tables.attention_decode, gpu, options.benchmark, sets);
  fit_prefills(fitter, hardware, tables.attention_prefill, gpu, options.benchmark, sets);
  fit_all_reduces(fitter, tables.collectives, gpu, options.benchmark, sets);
  hardware.kernels = sets.vllm;
  hardware.tensorrt_llm.reset();
  if (sets.has_tensorrt_llm) hardware.tensorrt_llm = sets.tensorrt_llm;
  return fitter.qualities();
}

}  // namespace servesim::calibrate
