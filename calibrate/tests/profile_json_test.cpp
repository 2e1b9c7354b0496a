// What is written of a profile's kernels is what the simulator reads back.
#include "profile_json.hpp"

#include "core/error.hpp"
#include "cost/measured_kernels.hpp"
#include "hardware/hardware_loader.hpp"
#include "measured_profile.hpp"
#include "support/catch.hpp"

using namespace servesim;
using namespace servesim::calibrate;

namespace {

std::string shipped_path(const std::string& name) {
  return std::string(SERVESIM_SOURCE_DIR) + "/models/hardware/" + name + ".json";
}

/// A shipped profile with its kernels written anew.
HardwareSpec rewritten(const std::string& name) {
  const HardwareSpec spec = load_hardware(name);
  auto profile = blocks_beside_kernels(shipped_path(name));
  profile.update(kernel_blocks(spec.kernels, [](const std::string& block) {
    return Provenance{"test of " + block, "fitted"};
  }));
  return hardware_from_json(nlohmann::json(profile), name, "test");
}

FitQuality quality(const std::string& kernel, double held_out, std::size_t left_out) {
  FitQuality q;
  q.kernel = kernel;
  q.rows = 100;
  q.all = 0.05;
  q.held_out = held_out;
  q.rows_held_out.resize(left_out);
  return q;
}

}  // namespace

TEST_CASE("every shipped profile's kernels survive being written and read", "[calibrate]") {
  for (const std::string& name : hardware_names()) {
    INFO(name);
    const HardwareSpec before = load_hardware(name), after = rewritten(name);
    for (const double m : {1.0, 48.0, 4096.0}) {
      for (const bool eight : {false, true}) {
        if (eight && !before.kernels.gemm_8bit) continue;
        const MeasuredGemm row{MeasuredEngine::kVllm, eight, {m, 6144, 4096}, 0};
        CHECK(predict_us(after, row) == Approx(predict_us(before, row)).epsilon(1e-3));
      }
      const MeasuredPrefill prefill{MeasuredEngine::kVllm, false, 2, 64 * m, 0, 32, 8, 128, 0};
      CHECK(predict_us(after, prefill) == Approx(predict_us(before, prefill)).epsilon(1e-3));
      const MeasuredDecode decode{MeasuredEngine::kVllm, false, m, 1000, 32, 8, 128, 0};
      CHECK(predict_us(after, decode) == Approx(predict_us(before, decode)).epsilon(1e-3));
    }
    CHECK(after.kernels.all_reduce.size() == before.kernels.all_reduce.size());
    CHECK(after.kernels.gemm.corrections.size() == before.kernels.gemm.corrections.size());
    CHECK(after.kernels.decode_attention_8bit.has_value() ==
          before.kernels.decode_attention_8bit.has_value());
    CHECK(after.kernels.prefill_attention_8bit.has_value() ==
          before.kernels.prefill_attention_8bit.has_value());
  }
}

TEST_CASE("each block says where it comes from", "[calibrate]") {
  const auto blocks =
      kernel_blocks(load_hardware("h100-sxm").kernels, [](const std::string& block) {
        return Provenance{"of " + block, "assumed"};
      });
  CHECK(blocks.size() >= 4);
  for (const auto& [name, block] : blocks.items()) {
    CHECK(block["source"] == "of " + name);
    CHECK(block["kind"] == "assumed");
  }
}

TEST_CASE("numbers are written to five digits", "[calibrate]") {
  CHECK(rounded(1.23456789) == 1.2346);
  CHECK(rounded(123456.0) == 123460.0);
  CHECK(rounded(1.23456789e-7) == 1.2346e-7);
  CHECK(rounded(0) == 0);
  CHECK(rounded(-2.00004) == -2);
}

TEST_CASE("tables and tile scales are written where they say something", "[calibrate]") {
  KernelSet set;
  const auto of = [](const std::string&) { return Provenance{"s", "fitted"}; };
  CHECK_FALSE(kernel_blocks(set, of)["gemm"].contains("table"));
  CHECK_FALSE(kernel_blocks(set, of)["gemm"].contains("tile_scale"));
  CHECK_FALSE(kernel_blocks(set, of)["gemm"].contains("quantize_us"));
  CHECK_FALSE(kernel_blocks(set, of).contains("gemm_8bit"));
  set.gemm.tile_scale = 1.0 / 16;
  set.gemm.corrections = {{1, 0.9}, {64, 1.1}};
  set.gemm.quantize_us = 2;
  set.gemm_8bit = set.gemm;
  const auto blocks = kernel_blocks(set, of);
  CHECK(blocks["gemm"]["tile_scale"] == 0.0625);
  CHECK(blocks["gemm"]["table"]["64"] == 1.1);
  CHECK(blocks["gemm_8bit"]["quantize_us"] == 2.0);
}

TEST_CASE("provenance names the fits behind a block and their errors", "[calibrate]") {
  const std::vector<FitQuality> all{quality("gemm bf16", 0.08, 30), quality("gemm fp8", 0.09, 31),
                                    quality("attention_decode bf16 vllm", 0.07, 22),
                                    quality("attention_decode bf16 tensorrt_llm", 0.06, 20)};
  const Provenance gemm = provenance("gemm", "vllm", all, "some tables");
  CHECK(gemm.kind == "fitted");
  CHECK(
      gemm.source ==
      "calibrate fit on some tables (gemm bf16: 100 rows, mean absolute error 5.0 %, 8.0 % on the "
      "30 left out of a first fit)");
  CHECK(provenance("gemm_8bit", "vllm", all, "t").source.find("gemm fp8") != std::string::npos);
  const std::string vllm = provenance("decode_attention", "vllm", all, "t").source;
  CHECK(vllm.find("bf16 vllm") != std::string::npos);
  CHECK(vllm.find("tensorrt_llm") == std::string::npos);
  const std::string trt = provenance("decode_attention", "tensorrt_llm", all, "t").source;
  CHECK(trt.find("tensorrt_llm") != std::string::npos);
  CHECK(trt.find("bf16 vllm") == std::string::npos);
  CHECK(provenance("all_reduce", "vllm", all, "t").source.find("nothing of this was measured") !=
        std::string::npos);
}
