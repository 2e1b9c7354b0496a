/// Does `simulate size` show what it must, and refuse what it cannot size?
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "smoke/process.hpp"
#include "support/catch.hpp"

namespace servesim {
namespace {

using nlohmann::json;
using testing::ProcessResult;
using testing::simulate;
using testing::TemporaryFolder;

json rows_of(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "size");
  arguments.insert(arguments.end(), {"--json", "-"});
  const ProcessResult result = simulate(arguments);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK(result.err.empty());
  const json document = json::parse(result.out);
  const bool training = std::count(arguments.begin(), arguments.end(), "--training") > 0;
  CHECK(document["schema"] == (training ? "servesim/size-training/v1" : "servesim/size/v1"));
  return document["rows"];
}

std::string table_of(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "size");
  const ProcessResult result = simulate(arguments);
  INFO(result.err);
  CHECK(result.exit_code == 0);
  CHECK(result.err.empty());
  return result.out;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void check_size_refused(std::vector<std::string> arguments, const std::string& word) {
  const TemporaryFolder folder;
  arguments.insert(arguments.begin(), "size");
  arguments.insert(arguments.end(), {"--json", folder.path() + "/out.json"});
  const ProcessResult result = simulate(arguments);
  INFO(word << ": " << result.err);
  CHECK(result.exit_code == 2);
  CHECK(result.error_lines() == 1);
  CHECK(result.out.empty());
  CHECK(has(result.err, word));
  CHECK(folder.names().empty());
}

struct MeasuredServer {
  const char* folder;
  const char* model;
};
constexpr MeasuredServer kMeasuredServers[] = {{"qwen3-14b-h100-10rps", "qwen3-14b"},
                                               {"llama-2-7b-tp1-general", "llama-2-7b"},
                                               {"llama-2-70b-tp4-roleplay", "llama-2-70b"},
                                               {"codellama-34b-tp2-general", "codellama-34b"},
                                               {"mixtral-8x7b-v0-1-tp2-general", "mixtral-8x7b"}};

/// A setting of a server, whichever of its two names the summary has.
std::string setting(const json& config, const char* key, const char* other) {
  return (config.contains(key) ? config.at(key) : config.at(other)).dump();
}

}  // namespace

TEST_CASE("size: the product of contexts and batches, with the keys of servesim/size/v1") {
  const json rows = rows_of({"--model", "llama-3-8b", "--hardware", "h100-sxm", "--context",
                             "2048,8192,128000", "--batch", "1,32,64"});
  REQUIRE(rows.size() == 9);
  for (const json& row : rows) {
    for (const char* key :
         {"weights_gb", "kv_gb", "kv_percent_of_weights", "total_gb", "usable_gb", "max_batch",
          "decode_ceiling_tokens_per_s", "arithmetic_intensity", "ridge", "kv_bytes_per_token",
          "activation_gb", "workspace_gb", "hbm_gb", "num_gpu_blocks", "ridge_batch",
          "step_floor_ms", "tensor_parallel_size", "block_size"}) {
      INFO(key);
      CHECK(row[key].is_number());
    }
    CHECK(row["model"] == "llama-3-8b");
    CHECK(row["hardware"] == "h100-sxm");
    CHECK(row["fits"].get<bool>() ==
          (row["total_gb"].get<double>() <= row["usable_gb"].get<double>()));
    CHECK(row["what_first"].empty() == row["fits"].get<bool>());
    CHECK_FALSE(row["curve"].empty());
    CHECK(row["warnings"].empty() == (row["context"] != 128'000));
  }
  CHECK(rows[0]["context"] == 2048);
  CHECK(rows[1]["batch"] == 32);
  CHECK(rows[4]["kv_gb"].get<double>() == Approx(34.36).epsilon(0.0003));
  CHECK(std::round(rows[4]["kv_percent_of_weights"].get<double>()) == 214);
  CHECK(rows[4]["fits"] == true);
  CHECK(rows[5]["fits"] == false);
}

TEST_CASE("size: settings that vary get columns, and the figures follow") {
  const json rows = rows_of({"--model", "llama-3-8b,llama-3-70b", "--quantization",
                             "none,int8,int4", "--tensor-parallel-size", "1"});
  REQUIRE(rows.size() == 6);
  const std::vector<double> ceilings{209, 417, 834, 24, 47, 95};
  for (std::size_t i = 0; i < ceilings.size(); ++i) {
    CHECK(std::round(rows[i]["decode_ceiling_tokens_per_s"].get<double>()) == ceilings[i]);
  }
  const std::string table = table_of({"--model", "llama-3-8b,llama-3-70b", "--batch", "1,8"});
  CHECK(has(table, "llama-3-70b"));
  CHECK(has(table, "max"));
  CHECK_FALSE(has(table, "One change at a time"));
}

TEST_CASE("size: a single deployment shows its budget, its curve and what to change") {
  const std::string table =
      table_of({"--model", "llama-3-8b", "--context", "8192", "--batch", "64"});
  for (const char* part : {"- weights", "28329 blocks", "--kv-cache-dtype fp8", "tokens/s",
                           "a full KV pool", "memory", "Ridge 295"}) {
    INFO(part);
    CHECK(has(table, part));
  }
  CHECK(has(table_of({"--context", "128,256", "--curve"}), "the ridge of the linear layers"));
}

TEST_CASE("size: KV heads, HBM rate and formats are what-ifs") {
  CHECK(rows_of({"--model", "llama-3-8b", "--context", "8192", "--batch", "32", "--num-kv-heads",
                 "32"})[0]["kv_gb"]
            .get<double>() == Approx(137.4).epsilon(0.001));
  const json step = rows_of({"--model", "llama-3-70b", "--hardware", "a100-sxm-80g", "--context",
                             "4096", "--batch", "32", "--hbm-bandwidth", "2TB/s"})[0];
  CHECK(step["step_floor_ms"].get<double>() >= 91);
  CHECK(step["step_floor_ms"].get<double>() < 93);
  CHECK(step["kv_gb"].get<double>() == Approx(42.95).epsilon(0.001));
  const json kv = rows_of({"--model", "llama-3-8b", "--kv-cache-dtype", "auto,fp8"});
  CHECK(kv[1]["kv_gb"].get<double>() < kv[0]["kv_gb"].get<double>());
  CHECK(kv[1]["num_gpu_blocks"].get<double>() > kv[0]["num_gpu_blocks"].get<double>());
}

TEST_CASE("size: num_gpu_blocks within 3 % of what real servers reported") {
  const char* shared = std::getenv("SERVESIM_SHARED");
  const std::filesystem::path serving =
      std::filesystem::path(shared != nullptr ? shared : SERVESIM_SHARED_DIR) / "measured/serving";
  if (!std::filesystem::exists(serving)) {
    WARN("skipped: no measured servers");
    return;
  }
  for (const MeasuredServer& server : kMeasuredServers) {
    const std::string summary =
        testing::read_file((serving / server.folder / "summary.json").string());
    const json config = json::parse(summary).at("config");
    const json row = rows_of(
        {"--model", server.model, "--hardware", "h100-sxm", "--tensor-parallel-size",
         setting(config, "tensor_parallelism", "tp"), "--gpu-memory-utilization",
         config.value("gpu_memory_utilization", json(0.9)).dump(), "--max-num-batched-tokens",
         config.at("max_num_batched_tokens").dump(), "--max-num-seqs",
         config.at("max_num_seqs").dump(), "--block-size", config.at("block_size").dump(),
         "--max-model-len", config.at("max_model_len").dump()})[0];
    const double measured = std::stod(setting(config, "num_gpu_blocks", "kv_blocks_total_gpu"));
    INFO(server.folder << ": " << row["num_gpu_blocks"] << " blocks, measured " << measured);
    CHECK(std::abs(row["num_gpu_blocks"].get<double>() / measured - 1) < 0.03);
  }
}

TEST_CASE("size: training") {
  const json rows = rows_of({"--training", "--hidden-size", "4096", "--num-layers", "32", "--batch",
                             "8", "--context", "4096,8192", "--activation-factor", "16",
                             "--checkpointing", "none,full"});
  REQUIRE(rows.size() == 4);
  CHECK(rows[0]["activations_gb"].get<double>() == Approx(137.438953472));
  CHECK(rows[2]["activations_gb"].get<double>() == Approx(2 * 137.438953472));
  CHECK(rows[1]["activations_gb"].get<double>() < 137.4 / 5);
  CHECK(rows[1]["compute_factor"].get<double>() == Approx(4.0 / 3));
  const json offloaded = rows_of({"--training", "--model", "llama-3-8b", "--offload", "nvme",
                                  "--offload-activations", "--no-flash-attention"})[0];
  REQUIRE(offloaded["transfers"].size() == 5);
  CHECK(offloaded["scores_per_layer_gb"].get<double>() > 0);
  CHECK(offloaded["transfers"][2]["link"] == "nvme");
  const std::string table =
      table_of({"--training", "--model", "llama-3-8b", "--offload", "none,cpu"});
  CHECK(has(table, "gradients out"));
  CHECK(has(table, "AdamW"));
}

TEST_CASE("size: a file holds what stdout would, and the same bytes each time") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/size.json";
  const ProcessResult result = simulate({"size", "--json", path});
  CHECK(result.exit_code == 0);
  CHECK(has(result.out, "llama-3.1-8b"));
  json first = json::parse(testing::read_file(path));
  CHECK(first["rows"] == rows_of({}));
  CHECK(simulate({"size", "--json", "-"}).out == simulate({"size", "--json", "-"}).out);
}

TEST_CASE("size: bad input is refused with one line") {
  for (const char* flag : {"--context", "--batch", "--block-size", "--tensor-parallel-size",
                           "--num-kv-heads", "--max-num-seqs", "--max-num-batched-tokens"}) {
    for (const char* value : {"0", "-1", "1.5", "8k", "16,", "16,16", "99999999999999999999"}) {
      check_size_refused({flag, value}, flag);
    }
  }
  check_size_refused({"--model", "llama-3-8"}, "'llama-3-8b'");
  check_size_refused({"--hardware", "h100-sx"}, "'h100-sxm'");
  check_size_refused({"--quantization", "fp7"}, "fp7");
  check_size_refused({"--kv-cache-dtype", "fp4"}, "fp4");
  check_size_refused({"--dtype", "float64"}, "float64");
  check_size_refused({"--tensor-parallel-size", "7"}, "32 attention heads");
  check_size_refused({"--num-kv-heads", "5"}, "must divide");
  check_size_refused({"--model", "deepseek-v3", "--num-kv-heads", "1"}, "MLA");
  check_size_refused({"--max-model-len", "131073"}, "131072");
  check_size_refused({"--max-num-seqs", "512", "--max-num-batched-tokens", "256"}, "512");
  check_size_refused({"--gpu-memory-utilization", "1.1"}, "--gpu-memory-utilization");
  for (const char* rate : {"0TB/s", "2TiBs", "fast", "-1TB/s", "/s"}) {
    check_size_refused({"--hbm-bandwidth", rate}, "--hbm-bandwidth");
  }
  check_size_refused({"--contxt", "5"}, "'--context'");
  check_size_refused({"stray"}, "stray");
  const ProcessResult unwritable = simulate({"size", "--json", "/no/such/out.json"});
  CHECK(unwritable.exit_code == 2);
  CHECK(unwritable.out.empty());
}

TEST_CASE("size: training and serving keep their flags apart") {
  check_size_refused({"--mfu", "0.5"}, "--training");
  check_size_refused({"--training", "--block-size", "16"}, "--block-size");
  check_size_refused({"--training", "--hidden-size", "4096"}, "--num-layers");
  check_size_refused({"--training", "--hidden-size", "4096", "--num-layers", "0"}, "--num-layers");
  check_size_refused({"--training", "--hidden-size", "4096", "--num-layers", "8", "--model", "x"},
                     "--model");
  check_size_refused(
      {"--training", "--hidden-size", "100", "--num-layers", "8", "--num-heads", "7"},
      "--num-heads");
  check_size_refused({"--training", "--checkpointing", "ful"}, "'full'");
  check_size_refused({"--training", "--offload", "disk"}, "nvme");
  check_size_refused({"--training", "--mfu", "2"}, "mfu");
  check_size_refused({"--training", "--activation-factor", "-1"}, "activation-factor");
  check_size_refused({"--training", "--nvme-read-bandwidth", "7 parsecs"}, "--nvme-read-bandwidth");
  check_size_refused({"--training", "--checkpoint-segments", "4"}, "--checkpointing full");
  check_size_refused({"--training", "--flash-attention", "--no-flash-attention"}, "contradict");
  check_size_refused({"--training", "--batch", "0"}, "--batch");
}

}  // namespace servesim
