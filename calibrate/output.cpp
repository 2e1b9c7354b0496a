#include "output.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/error.hpp"
#include "text.hpp"

namespace servesim::calibrate {
namespace {

constexpr const char* kEngine = "calibrate 0.1.0";

long long whole(std::int64_t value) {
  return static_cast<long long>(value);
}

/// GB/s of `bytes` in `us`.
double gbps(double bytes, double us) {
  return bytes / us * 1e-3;
}

std::string source_of(const Environment& e) {
  return csv_field("measured by calibrate on this machine, " + e.toolkit);
}

template <class Row>
std::string table(const std::string& header, const Measurement& m, const Row& row) {
  std::string text = header + "\n";
  for (const Timing& t : m.timings) text += row(t);
  return text;
}

std::string optional_number(const std::optional<double>& value) {
  return value ? print_to_string("%.4g", *value) : std::string();
}

}  // namespace

std::string gemm_csv(const Measurement& m, const Environment& e, Kernel kernel) {
  const std::string gpu = csv_field(e.device), source = source_of(e);
  const std::string library = kernel == Kernel::kGemv ? "own_gemv" : csv_field(e.gemm_library);
  return table("gpu,engine,kernel,dtype,m,n,k,latency_us,tflops,gbps_min_traffic,source", m,
               [&](const Timing& t) -> std::string {
                 if (t.c.kernel != kernel) return {};
                 const double us = t.summary.us;
                 return print_to_string("%s,%s,%s,%s,%lld,%lld,%lld,%.3f,%.4g,%.4g,%s\n",
                                        gpu.c_str(), kEngine, library.c_str(), name_of(t.c.dtype),
                                        whole(std::max<std::int64_t>(t.c.m, 1)), whole(t.c.n),
                                        whole(t.c.k), us, flops(t.c) / us * 1e-6,
                                        gbps(traffic(t.c), us), source.c_str());
               });
}

std::string decode_csv(const Measurement& m, const Environment& e) {
  const std::string gpu = csv_field(e.device), source = source_of(e);
  return table(
      "gpu,engine,kernel,attn_dtype,kv_dtype,batch,ctx,heads,kv_heads,head_dim,latency_us,kv_gbps,"
      "source",
      m, [&](const Timing& t) -> std::string {
        // The published columns have no block size; timings.csv has the other ones.
        if (t.c.kernel != Kernel::kDecodeAttention || t.c.block_size != 16) return {};
        const double kv =
            4.0 * static_cast<double>(t.c.batch * t.c.context * t.c.kv_heads * t.c.head_dim);
        return print_to_string(
            "%s,%s,own_paged,bfloat16,bfloat16,%lld,%lld,%lld,%lld,%lld,%.3f,%.4g,%s\n",
            gpu.c_str(), kEngine, whole(t.c.batch), whole(t.c.context), whole(t.c.heads),
            whole(t.c.kv_heads), whole(t.c.head_dim), t.summary.us, gbps(kv, t.summary.us),
            source.c_str());
      });
}

std::string prefill_csv(const Measurement& m, const Environment& e) {
  const std::string gpu = csv_field(e.device), source = source_of(e);
  return table(
      "gpu,engine,kernel,attn_dtype,kv_dtype,batch,isl,past_tokens,heads,kv_heads,head_dim,"
      "latency_us,causal_tflops,source",
      m, [&](const Timing& t) -> std::string {
        if (t.c.kernel != Kernel::kPrefillAttention) return {};
        return print_to_string(
            "%s,%s,own_tiled,bfloat16,bfloat16,%lld,%lld,0,%lld,%lld,%lld,%.3f,%.4g,%s\n",
            gpu.c_str(), kEngine, whole(t.c.batch), whole(t.c.context), whole(t.c.heads),
            whole(t.c.kv_heads), whole(t.c.head_dim), t.summary.us,
            flops(t.c) / t.summary.us * 1e-6, source.c_str());
      });
}

std::string collectives_csv(const Measurement& m, const Environment& e) {
  const std::string gpu = csv_field(e.device), source = source_of(e);
  return table("gpu,impl,op,dtype,n_gpus,nodes,bytes,latency_us,busbw_GBps,source", m,
               [&](const Timing& t) -> std::string {
                 if (t.c.kernel != Kernel::kAllReduce) return {};
                 const double n = static_cast<double>(t.c.gpus);
                 const double bus =
                     gbps(static_cast<double>(t.c.bytes), t.summary.us) * 2 * (n - 1) / n;
                 return print_to_string("%s,NCCL 2,all_reduce,half,%lld,1,%lld,%.3f,%.4g,%s\n",
                                        gpu.c_str(), whole(t.c.gpus), whole(t.c.bytes),
                                        t.summary.us, bus, source.c_str());
               });
}

std::string elementwise_csv(const Measurement& m, const Environment&) {
  double best = 0;  // of the read bandwidth, which frac_bw is of
  for (const Timing& t : m.timings) {
    if (t.c.kernel == Kernel::kRead) best = std::max(best, gbps(traffic(t.c), t.summary.us));
  }
  return table("model,tp,op,M,bytes,time_us,gbps,frac_bw", m, [&](const Timing& t) -> std::string {
    if (std::string(family_of(t.c.kernel)) != "elementwise") return {};
    const double rate = gbps(traffic(t.c), t.summary.us);
    return print_to_string("width %lld,1,%s,%lld,%.0f,%.3f,%.4g,%.4g\n", whole(t.c.n),
                           name_of(t.c.kernel), whole(t.c.m), traffic(t.c), t.summary.us, rate,
                           best > 0 ? rate / best : 0);
  });
}

std::string micro_csv(const Measurement& m, const Environment& e, const HostTimes& host) {
  const std::string gpu = csv_field(e.device), source = source_of(e);
  const auto row = [&](const char* kind, const std::string& what, double value, const char* unit,
                       const std::string& note) {
    return print_to_string("%s,%s,%s,%.5g,%s,measured,%s,%s\n", kind, gpu.c_str(),
                           csv_field(what).c_str(), value, unit, csv_field(note).c_str(),
                           source.c_str());
  };
  std::string text = "kind,gpu,what,value,unit,confidence,note,source\n";
  for (const Timing& t : m.timings) {
    const std::string family = family_of(t.c.kernel);
    const double us = t.summary.us;
    const std::string note = print_to_string("spread %.1f %%", 100 * t.summary.spread);
    if (t.c.kernel == Kernel::kPeakFma) {
      text +=
          row("peak", "fp32 multiply-adds in registers", flops(t.c) / us * 1e-3, "GFLOP/s", note);
    } else if (family == "bandwidth") {
      text += row("hbm_bw", describe(t.c), gbps(traffic(t.c), us), "GB/s", note);
    } else if (family == "copies") {
      text += row(t.c.kernel == Kernel::kPeerCopy ? "peer" : "pcie", describe(t.c),
                  gbps(traffic(t.c), us), "GB/s", note);
    } else if (family == "launch") {
      text += row("launch", describe(t.c), us, "us", note);
    } else if (family == "sampling") {
      text += row("sampling", describe(t.c), us * 1e3 / static_cast<double>(t.c.m * t.c.n),
                  "ns/logit", note);
    }
  }
  if (host.measured) {
    const std::string note = "stand-in in C++ without a server: a lower bound of an engine's";
    text += row("host", "front end before", host.front_end_before_ms, "ms", note);
    text += row("host", "front end after", host.front_end_after_ms, "ms", note);
    text += row("host", "step", host.step_ms, "ms", note);
  }
  return text;
}

std::string timings_csv(const Measurement& m) {
  return table(
      "kernel,dtype,m,n,k,batch,context,heads,kv_heads,head_dim,block_size,bytes,gpus,latency_us,"
      "min_us,p90_us,spread,samples,passes,check",
      m, [](const Timing& t) {
        const Case& c = t.c;
        const Summary& s = t.summary;
        return print_to_string(
            "%s,%s,%lld,%lld,%lld,%lld,%lld,%lld,%lld,%lld,%lld,%lld,%lld,%.4f,%.4f,%.4f,%.4f,%d,"
            "%d,%.3g\n",
            name_of(c.kernel), name_of(c.dtype), whole(c.m), whole(c.n), whole(c.k), whole(c.batch),
            whole(c.context), whole(c.heads), whole(c.kv_heads), whole(c.head_dim),
            whole(c.block_size), whole(c.bytes), whole(c.gpus), s.us, s.least, s.p90, s.spread,
            s.samples, s.passes, t.check);
      });
}

std::string sustained_csv(const Measurement& m) {
  std::string text = "at_s,latency_us,clock_mhz,power_w,temperature_c\n";
  for (const SustainedPoint& p : m.sustained) {
    text += print_to_string(
        "%.4f,%.3f,%s,%s,%s\n", p.at_s, p.us, optional_number(p.power.clock_mhz).c_str(),
        optional_number(p.power.power_w).c_str(), optional_number(p.power.temperature_c).c_str());
  }
  return text;
}

std::string left_out_csv(const Measurement& m) {
  std::string text = "kernel,case,reason\n";
  for (const LeftOut& out : m.left_out) {
    text += print_to_string("%s,%s,%s\n", name_of(out.c.kernel), csv_field(describe(out.c)).c_str(),
                            csv_field(out.reason).c_str());
  }
  return text;
}

void make_folder(const std::string& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) throw InputError(folder + ": cannot be made: " + failed.message());
  if (access(folder.c_str(), W_OK | X_OK) != 0) {
    throw InputError(folder + ": cannot be written to: " + std::strerror(errno));
  }
}

void write_measurement(const std::string& folder, const Measurement& m, const Environment& e,
                       const HostTimes& host) {
  make_folder(folder);
  const auto write = [&](const char* name, const std::string& content) {
    write_file((std::filesystem::path(folder) / name).string(), content);
  };
  write("gemm.csv", gemm_csv(m, e, Kernel::kGemm));
  write("gemv.csv", gemm_csv(m, e, Kernel::kGemv));
  write("attention_decode.csv", decode_csv(m, e));
  write("attention_prefill.csv", prefill_csv(m, e));
  write("collectives.csv", collectives_csv(m, e));
  write("elementwise.csv", elementwise_csv(m, e));
  write("micro.csv", micro_csv(m, e, host));
  write("timings.csv", timings_csv(m));
  write("sustained.csv", sustained_csv(m));
  write("left_out.csv", left_out_csv(m));
  write("environment.json", to_json(e) + "\n");
}

}  // namespace servesim::calibrate
