/// Published figures of memory and ceilings, and what must hold for any deployment.
#include "cost/deployment_size.hpp"

#include <cmath>
#include <random>

#include "core/error.hpp"
#include "hardware/hardware_loader.hpp"
#include "model/model_loader.hpp"
#include "support/catch.hpp"

using namespace servesim;

namespace {

DeploymentSize sized(const std::string& model, std::int64_t context, std::int64_t batch,
                     MemoryOptions memory = {}, const std::string& gpu = "h100-sxm") {
  return size_deployment(load_model(model), load_hardware(gpu), {memory, context, batch});
}

MemoryOptions with_weights(WeightFormat format) {
  MemoryOptions memory;
  memory.weights = format;
  return memory;
}

double rounded(double value, double step) {
  return std::round(value / step) * step;
}

/// A deployment drawn from what ships; may not fit and may not be shardable.
struct Drawn {
  ModelSpec model;
  HardwareSpec hardware;
  SizeQuery query;
};

class Draw {
 public:
  explicit Draw(std::uint32_t seed) : random_(seed) {}

  Drawn operator()() {
    while (true) {
      Drawn drawn{load_model(one_of(model_names())), load_hardware(one_of(hardware_names())), {}};
      MemoryOptions& memory = drawn.query.memory;
      memory.tensor_parallel = one_of<std::int64_t>({1, 2, 4, 8});
      memory.weights = one_of<WeightFormat>(
          {WeightFormat::k16Bit, WeightFormat::kFp8, WeightFormat::kInt8, WeightFormat::kInt4});
      memory.kv = one_of<KvFormat>({KvFormat::k16Bit, KvFormat::kFp8, KvFormat::kInt4});
      memory.block_size = one_of<std::int64_t>({1, 16, 64, 256});
      drawn.query.context = one_of<std::int64_t>({1, 15, 17, 300, 4096, 100'000});
      drawn.query.batch = one_of<std::int64_t>({1, 2, 7, 64, 1000});
      try {
        drawn.model.check_tensor_parallel(memory.tensor_parallel);
        return drawn;
      } catch (const InputError&) {
      }
    }
  }

 private:
  template <typename T>
  T one_of(const std::vector<T>& all) {
    return all[random_() % all.size()];
  }

  std::mt19937 random_;
};

DeploymentSize sized(const Drawn& drawn) {
  return size_deployment(drawn.model, drawn.hardware, drawn.query);
}

}  // namespace

TEST_CASE("KV of Llama-3-8B in 16 bits", "[size]") {
  struct Row {
    std::int64_t context, batch;
    double gb, percent;
  };
  for (const Row& row : {Row{2048, 1, 0.27, 2}, Row{8192, 1, 1.07, 7}, Row{8192, 32, 34.36, 214},
                         Row{8192, 64, 68.72, 428}, Row{128'000, 1, 16.78, 104}}) {
    const DeploymentSize size = sized("llama-3-8b", row.context, row.batch);
    INFO(row.context << " x " << row.batch);
    CHECK(size.kv_bytes_per_token == 128 * 1024);
    CHECK(rounded(size.kv_bytes * 1e-9, 0.01) == Approx(row.gb));
    CHECK(std::round(100 * size.kv_bytes / size.weight_bytes) == row.percent);
  }
}

TEST_CASE("KV with every query head its own, and with one for all", "[size]") {
  ModelSpec small = load_model("llama-3-8b");
  small.override_kv_heads(32);
  const HardwareSpec gpu = load_hardware("h100-sxm");
  CHECK(rounded(size_deployment(small, gpu, {{}, 8192, 32}).kv_bytes * 1e-9, 0.1) == Approx(137.4));

  ModelSpec large = load_model("llama-3-70b");
  const DeploymentSize gqa = size_deployment(large, gpu, {{}, 4096, 32});
  CHECK(gqa.kv_bytes_per_token == 327'680);
  CHECK(rounded(gqa.kv_bytes * 1e-9, 0.1) == Approx(42.9));
  large.override_kv_heads(1);
  CHECK(size_deployment(large, gpu, {{}, 4096, 32}).kv_bytes_per_token == 327'680 / 8);
}

TEST_CASE("tokens per second at batch 1 are the HBM rate over the weights", "[size]") {
  struct Row {
    const char* model;
    double bf16, int8, int4;
  };
  for (const Row& row : {Row{"mistral-7b-v0.1", 231, 463, 925}, Row{"llama-3-8b", 209, 417, 834},
                         Row{"llama-3-70b", 24, 47, 95}}) {
    INFO(row.model);
    const auto ceiling = [&](WeightFormat format) {
      return std::round(
          sized(row.model, 2048, 1, with_weights(format)).decode_ceiling_tokens_per_s);
    };
    CHECK(ceiling(WeightFormat::k16Bit) == row.bf16);
    CHECK(ceiling(WeightFormat::kInt8) == row.int8);
    CHECK(ceiling(WeightFormat::kFp8) == row.int8);
    CHECK(ceiling(WeightFormat::kInt4) == row.int4);
  }
  // v0.3 has 768 more entries in its vocabulary.
  CHECK(sized("mistral-7b", 2048, 1).decode_ceiling_tokens_per_s == Approx(231).epsilon(0.002));
}

TEST_CASE("the ridge of an H100, and the batch that reaches it", "[size]") {
  const DeploymentSize size = sized("llama-3-8b", 2048, 1);
  CHECK(std::round(size.ridge) == 295);
  CHECK(size.linear_intensity == Approx(1));
  CHECK(size.ridge_batch == 296);
  // Each sequence brings 0.27 GB of KV and 17 GFLOP: 64 FLOP per byte at any batch.
  CHECK_FALSE(size.ridge_batch_with_kv.has_value());
  CHECK(sized("llama-3-8b", 1, 1).ridge_batch_with_kv > 296);
  CHECK(sized("llama-3-8b", 2048, 1, with_weights(WeightFormat::kFp8)).ridge ==
        Approx(2 * size.ridge).epsilon(0.001));
}

TEST_CASE("the step of Llama-3-70B at 2 TB/s takes at least 91 ms", "[size]") {
  HardwareSpec gpu = load_hardware("a100-sxm-80g");
  gpu.hbm_bytes_per_s = 2e12;
  const DeploymentSize size = size_deployment(load_model("llama-3-70b"), gpu, {{}, 4096, 32});
  CHECK(size.step_floor_s >= 0.091);
  CHECK(size.step_floor_s == Approx((141.1e9 + 42.95e9) / 2e12).epsilon(0.001));
}

TEST_CASE("of a mixture of experts the chosen ones are read", "[size]") {
  const ModelSpec model = load_model("mixtral-8x7b");
  const double experts = 32.0 * 8 * 3 * 4096 * 14336 * 2;
  const DecodeWork one = decode_work(model, {}, 1, 1);
  CHECK(one.weight_bytes == Approx(model.weight_bytes(WeightFormat::k16Bit, 1) - 0.75 * experts));
  const DecodeWork many = decode_work(model, {}, 1000, 1);
  CHECK(many.weight_bytes == Approx(model.weight_bytes(WeightFormat::k16Bit, 1)));
}

TEST_CASE("a windowed layer reads its window", "[size]") {
  const ModelSpec model = load_model("mistral-7b-v0.1");
  CHECK(decode_work(model, {}, 1, 4096).kv_bytes == decode_work(model, {}, 1, 8192).kv_bytes);
  CHECK(decode_work(model, {}, 1, 2048).kv_bytes < decode_work(model, {}, 1, 4096).kv_bytes);
}

TEST_CASE("the calculator agrees with the cost model on what a step moves", "[size]") {
  // The cost model leaves the input embedding out and adds activations.
  const ModelSpec model = load_model("llama-3-70b");
  MemoryOptions memory;
  memory.tensor_parallel = 4;
  const HardwareSpec gpu = load_hardware("h100-sxm");
  const SizeQuery query{memory, 4096, 32};
  const DeploymentSize size = size_deployment(model, gpu, query);
  for (const BatchPoint& point : batch_curve(model, gpu, query, size)) {
    const DecodeWork work = decode_work(model, memory, point.batch, 4096);
    const double floor_s = (work.weight_bytes + work.kv_bytes) / (4 * gpu.hbm_bytes_per_s);
    INFO("batch " << point.batch);
    CHECK(point.step_s > floor_s);
    CHECK(point.step_s < 2 * floor_s);
  }
}

TEST_CASE("what does not fit comes with what to change", "[size]") {
  const ModelSpec model = load_model("llama-3-8b");
  const HardwareSpec gpu = load_hardware("h100-sxm");
  CHECK(what_first(model, gpu, {{}, 8192, 32}).empty());
  const std::vector<SizeChange> changes = what_first(model, gpu, {{}, 8192, 64});
  REQUIRE(changes.size() == 5);
  const std::vector<std::string> flags{"--quantization int4", "--kv-cache-dtype fp8",
                                       "--num-kv-heads 4", "--tensor-parallel-size 2"};
  for (std::size_t i = 0; i < flags.size(); ++i) {
    INFO(changes[i].change);
    CHECK(changes[i].flags == flags[i]);
    CHECK(changes[i].fits);
    CHECK(changes[i].total_bytes <= changes[i].usable_bytes);
    CHECK(changes[i].max_batch >= 64);
  }
  const SizeChange& offload = changes.back();
  const DeploymentSize before = sized("llama-3-8b", 8192, 64);
  CHECK(offload.host_bytes == Approx(before.total_bytes - before.usable_bytes));
  CHECK(offload.step_floor_s ==
        Approx(before.step_floor_s + offload.host_bytes / gpu.pcie_bytes_per_s));
}

TEST_CASE("changes that make it fit stand before those that do not", "[size]") {
  const std::vector<SizeChange> changes =
      what_first(load_model("llama-3-70b"), load_hardware("a100-sxm-80g"), {{}, 4096, 32});
  REQUIRE(changes.size() == 5);
  CHECK(changes[0].change == "shard");
  CHECK(changes[1].change == "offload weights");
  for (std::size_t i = 0; i < changes.size(); ++i) CHECK(changes[i].fits == (i < 2));
}

TEST_CASE("KV that exceeds the memory is not helped by moving weights out", "[size]") {
  const std::vector<SizeChange> changes =
      what_first(load_model("llama-3-8b"), load_hardware("h100-sxm"), {{}, 8192, 1000});
  for (const SizeChange& change : changes) CHECK_FALSE(change.fits);
  CHECK(changes.back().change == "offload weights");
  CHECK(changes[changes.size() - 2].change == "quantise both");
}

TEST_CASE("sizes that are none are refused", "[size]") {
  const ModelSpec model = load_model("llama-3-8b");
  const HardwareSpec gpu = load_hardware("h100-sxm");
  CHECK_THROWS_AS(size_deployment(model, gpu, {{}, 0, 1}), InputError);
  CHECK_THROWS_AS(size_deployment(model, gpu, {{}, -5, 1}), InputError);
  CHECK_THROWS_AS(size_deployment(model, gpu, {{}, 2048, 0}), InputError);
  CHECK_THROWS_AS(size_deployment(model, gpu, {{}, 2'000'000'000, 1}), InputError);
  MemoryOptions memory;
  memory.tensor_parallel = 7;
  CHECK_THROWS_AS(size_deployment(model, gpu, {memory, 2048, 1}), InputError);
}

TEST_CASE("property: fits is total within usable is batch within max_batch", "[size]") {
  Draw draw(1);
  int fitting = 0;
  for (int i = 0; i < 500; ++i) {
    Drawn drawn = draw();
    const DeploymentSize size = sized(drawn);
    INFO(drawn.model.name << " on " << drawn.hardware.name << " " << drawn.query.context << " x "
                          << drawn.query.batch);
    CHECK(size.fits() == (drawn.query.batch <= size.max_batch));
    CHECK(size.total_bytes >= size.weight_bytes + size.kv_bytes);
    CHECK(size.kv_padding_bytes >= 0);
    fitting += size.fits() ? 1 : 0;
    if (size.max_batch == 0) continue;
    drawn.query.batch = size.max_batch;
    CHECK(sized(drawn).fits());
    drawn.query.batch = size.max_batch + 1;
    CHECK_FALSE(sized(drawn).fits());
  }
  CHECK(fitting > 50);
  CHECK(fitting < 450);
}

TEST_CASE("property: more never takes less, and quantising never takes more", "[size]") {
  Draw draw(2);
  for (int i = 0; i < 300; ++i) {
    const Drawn drawn = draw();
    const DeploymentSize size = sized(drawn);
    INFO(drawn.model.name << " on " << drawn.hardware.name << " " << drawn.query.context << " x "
                          << drawn.query.batch);
    Drawn longer = drawn;
    longer.query.context += 1 + i;
    CHECK(sized(longer).total_bytes >= size.total_bytes);
    CHECK(sized(longer).max_batch <= size.max_batch);
    CHECK(sized(longer).step_floor_s >= size.step_floor_s);
    Drawn wider = drawn;
    wider.query.batch += 1 + i;
    CHECK(sized(wider).total_bytes > size.total_bytes);
    CHECK(sized(wider).work.intensity() >= size.work.intensity());
    Drawn quantised = drawn;
    quantised.query.memory.weights = WeightFormat::kInt4;
    CHECK(sized(quantised).total_bytes <= size.total_bytes);
    CHECK(sized(quantised).decode_ceiling_tokens_per_s >= size.decode_ceiling_tokens_per_s);
    quantised.query.memory.kv = KvFormat::kInt4;
    CHECK(sized(quantised).max_batch >= size.max_batch);
  }
}

TEST_CASE("property: the batch that reaches the ridge is the smallest that does", "[size]") {
  Draw draw(3);
  int reached = 0;
  for (int i = 0; i < 100; ++i) {
    const Drawn drawn = draw();
    const DeploymentSize size = sized(drawn);
    const auto intensity = [&](std::int64_t batch, std::int64_t context) {
      return decode_work(drawn.model, drawn.query.memory, batch, context).intensity();
    };
    REQUIRE(size.ridge_batch.has_value());
    CHECK(intensity(*size.ridge_batch, 0) >= size.ridge);
    if (*size.ridge_batch > 1) CHECK(intensity(*size.ridge_batch - 1, 0) < size.ridge);
    if (!size.ridge_batch_with_kv) continue;
    ++reached;
    CHECK(*size.ridge_batch_with_kv >= *size.ridge_batch);
    CHECK(intensity(*size.ridge_batch_with_kv, drawn.query.context) >= size.ridge);
  }
  CHECK(reached > 5);
}

TEST_CASE("property: throughput grows with the batch, and each user waits longer", "[size]") {
  Draw draw(4);
  int points = 0;
  for (int i = 0; i < 150; ++i) {
    const Drawn drawn = draw();
    const DeploymentSize size = sized(drawn);
    std::vector<BatchPoint> curve;
    try {
      curve = batch_curve(drawn.model, drawn.hardware, drawn.query, size);
    } catch (const InputError&) {
      continue;  // no all-reduce data
    }
    INFO(drawn.model.name << " on " << drawn.hardware.name << " context " << drawn.query.context);
    CHECK(curve.empty() == (size.max_batch == 0));
    for (std::size_t at = 1; at < curve.size(); ++at) {
      const BatchPoint& one = curve[at - 1];
      const BatchPoint& next = curve[at];
      INFO("batch " << one.batch << " to " << next.batch);
      const bool doubled = next.batch == 2 * one.batch;
      CHECK(next.tokens_per_s >= (doubled ? 1 : 0.8) * one.tokens_per_s);
      CHECK(next.tokens_per_s_per_user == Approx(1 / next.step_s));
      CHECK(next.step_s >= 0.999 * one.step_s);
      ++points;
    }
    if (!curve.empty()) {
      CHECK(curve.back().batch <= size.max_batch);
      const bool full = curve.back().batch == size.max_batch;
      CHECK((full || curve.back().batch >= *size.ridge_batch));
      if (curve.size() > 1) CHECK(curve[curve.size() - 2].batch < *size.ridge_batch);
    }
  }
  CHECK(points > 200);
}
