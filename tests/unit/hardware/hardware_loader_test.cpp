#include "hardware/hardware_loader.hpp"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/data_dir.hpp"
#include "core/error.hpp"
#include "core/params.hpp"
#include "support/catch.hpp"

using namespace servesim;
using nlohmann::json;

namespace {

std::string profile_path(const std::string& name) {
  return data_dir() + "/models/hardware/" + name + ".json";
}

json h100() {
  return read_json_file(profile_path("h100-sxm"));
}

std::string failure(const json& profile) {
  try {
    hardware_from_json(profile, "test", "test.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Calls `visit(pointer, block)` for every top-level block of a data file.
template <typename Visit>
void each_block(const json& document, Visit visit) {
  for (const auto& [key, block] : document.items()) visit(key, block);
}

}  // namespace

TEST_CASE("every shipped profile loads", "[hardware]") {
  const std::vector<std::string> names = hardware_names();
  CHECK(names.size() >= 9);
  for (const std::string& name : names) {
    INFO(name);
    const HardwareSpec gpu = load_hardware(name);
    CHECK(gpu.name == name);
    CHECK(gpu.is_a100() == contains(name, "a100"));
    for (const std::int64_t tp : {2, 4, 8}) CHECK(gpu.all_reduce_for(tp).nccl.bytes_per_s > 1e9);
    CHECK_THROWS_AS(gpu.all_reduce_for(1000), InputError);
  }
}

TEST_CASE("every block of every shipped profile has a source and a kind", "[hardware]") {
  for (const std::string& name : hardware_names()) {
    each_block(read_json_file(profile_path(name)), [&](const std::string& key, const json& block) {
      INFO(name << " " << key);
      REQUIRE(block.is_object());
      CHECK_FALSE(block.value("source", "").empty());
      CHECK_FALSE(block.value("kind", "").empty());
    });
  }
}

TEST_CASE("a block without source or kind is refused", "[hardware]") {
  REQUIRE(failure(h100()).empty());
  each_block(h100(), [](const std::string& key, const json&) {
    for (const char* field : {"source", "kind"}) {
      json profile = h100();
      profile[key].erase(field);
      INFO(key << " without " << field);
      CHECK(contains(failure(profile), "/" + key + "/" + field));
    }
    json profile = h100();
    profile[key]["kind"] = "guessed";
    CHECK(contains(failure(profile), "guessed"));
  });
}

TEST_CASE("rates must be positive and efficiencies at most 1", "[hardware]") {
  const auto with = [](const char* block, const char* key, const json& value) {
    json profile = h100();
    profile[block][key] = value;
    return failure(profile);
  };
  for (const json& bad : {json(0), json(-1), json(1e300), json("fast"), json(nullptr)}) {
    INFO(bad);
    CHECK(contains(with("hbm", "bytes_per_s", bad), "bytes_per_s"));
    CHECK(contains(with("compute", "bf16_flops_per_s", bad), "bf16_flops_per_s"));
    CHECK(contains(with("compute", "sms", bad), "sms"));
    CHECK(contains(with("memory", "bytes", bad), "bytes"));
    CHECK(contains(with("gemm", "efficiency_hot", bad), "efficiency_hot"));
  }
  CHECK(contains(with("gemm", "bandwidth_efficiency", 1.01), "bandwidth_efficiency"));
  CHECK(contains(with("gemm", "efficiency_cold", 1.5), "efficiency_cold"));
  CHECK(contains(with("gemm", "efficiency_hot", 0.99), "efficiency_cold"));
  CHECK(contains(with("gemm", "table", {{"1", 3.0}}), "table"));
  CHECK(contains(with("gemm", "table", {{"3", 1.0}}), "3"));
  CHECK(contains(with("decode_attention", "short_saving_us", 100), "short_saving_us"));
  CHECK(contains(with("tensorrt_llm", "gemm", json::object()), "/tensorrt_llm/gemm"));
  CHECK(contains(with("gemm", "t0_us", -1), "t0_us"));
}

TEST_CASE("unknown keys and names are refused with a suggestion", "[hardware]") {
  json profile = h100();
  profile["gemm"]["t0_ms"] = 1;
  CHECK(contains(failure(profile), "t0_ms"));
  profile = h100();
  profile["hbm2"] = profile["hbm"];
  CHECK(contains(failure(profile), "did you mean 'hbm'?"));
  CHECK_FALSE(failure(json::array()).empty());
  CHECK_THROWS_AS(load_hardware("h100-smx"), InputError);
  CHECK_THROWS_AS(load_hardware("absent.json"), InputError);
}

TEST_CASE("an all-reduce size between two counts takes the larger", "[hardware]") {
  const HardwareSpec gpu = load_hardware("h100-sxm");
  CHECK(gpu.all_reduce_for(3).nccl.latency_us == gpu.all_reduce_for(4).nccl.latency_us);
}
