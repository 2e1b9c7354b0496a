/// Published figures of training memory, and what must hold for any run.
#include "cost/training_memory.hpp"

#include <cmath>

#include "core/error.hpp"
#include "hardware/hardware_loader.hpp"
#include "model/model_loader.hpp"
#include "support/catch.hpp"

using namespace servesim;

namespace {

TrainingSize trained(const TrainingOptions& options,
                     const TrainingShape& shape = training_shape(4096, 32, 32)) {
  return size_training(shape, load_hardware("h100-sxm"), options);
}

TrainingOptions sequences(std::int64_t batch, std::int64_t context) {
  TrainingOptions o;
  o.batch = batch;
  o.context = context;
  return o;
}

bool refuses(const TrainingOptions& options) {
  try {
    trained(options);
  } catch (const InputError&) {
    return true;
  }
  return false;
}

}  // namespace

TEST_CASE("activations of d=4096, L=32, B=8, c=16 are 137.4 GB at 4096 tokens", "[training]") {
  const TrainingSize size = trained(sequences(8, 4096));
  CHECK(size.activation_bytes == 137'438'953'472.0);
  CHECK(size.layer_bytes == size.activation_bytes / 32);
  CHECK(trained(sequences(8, 8192)).activation_bytes == 2 * size.activation_bytes);
}

TEST_CASE("with dropout and stored scores a layer is that of Korthikanti et al.", "[training]") {
  // s b h (34 + 5 a s / h), arXiv:2205.05198, equation 1; their 175B and 530B models.
  struct Row {
    std::int64_t hidden, heads;
  };
  for (const Row& row : {Row{12288, 96}, Row{20480, 128}}) {
    TrainingOptions o = sequences(1, 2048);
    o.flash_attention = false;
    o.dropout = true;
    const auto h = static_cast<double>(row.hidden);
    const auto a = static_cast<double>(row.heads);
    const double published = 2048 * h * (34 + 5 * a * 2048 / h);
    CHECK(trained(o, training_shape(row.hidden, 96, row.heads)).layer_bytes == Approx(published));
    o.flash_attention = true;
    CHECK(trained(o, training_shape(row.hidden, 96, row.heads)).layer_bytes ==
          Approx(2048 * h * 34));
  }
}

TEST_CASE("a parameter takes 16 bytes with AdamW in mixed precision", "[training]") {
  const TrainingShape shape = training_shape(load_model("llama-3-8b"));
  const TrainingSize size = trained(sequences(1, 128), shape);
  CHECK(size.weight_bytes == 2 * 8030261248.0);
  CHECK(size.gradient_bytes == 2 * 8030261248.0);
  CHECK(size.optimizer_bytes == 12 * 8030261248.0);
  CHECK(size.logit_bytes == 4 * 128 * 128256.0);
  CHECK(training_shape(4096, 32, 32).parameters == 12.0 * 32 * 4096 * 4096);
}

TEST_CASE("full checkpointing keeps root-of-L segments and costs a third more", "[training]") {
  TrainingOptions o = sequences(8, 4096);
  const TrainingSize none = trained(o);
  o.checkpointing = Checkpointing::kFull;
  const TrainingSize full = trained(o);
  CHECK(full.segments == 6);
  const double row = 8.0 * 4096 * 4096 * 2;
  CHECK(full.activation_bytes == 6 * row + 6 * none.layer_bytes);
  CHECK(full.activation_bytes < none.activation_bytes / 5);
  CHECK(full.compute_factor() == Approx(4.0 / 3));
  CHECK(none.compute_factor() == 1);
  CHECK(full.step_s == Approx(none.step_s * 4 / 3));
  // Memory in O(sqrt L): four times the layers, twice the activations.
  const auto deep = [&](std::int64_t layers) {
    return trained(o, training_shape(4096, layers, 32)).activation_bytes;
  };
  CHECK(deep(144) == 2 * deep(36));
  o.segments = 32;
  CHECK(trained(o).activation_bytes == 32 * row + none.layer_bytes);
}

TEST_CASE("selective checkpointing drops the scores for a few percent of compute", "[training]") {
  TrainingOptions o = sequences(8, 4096);
  const double flash = trained(o).activation_bytes;
  o.flash_attention = false;
  const TrainingSize naive = trained(o);
  CHECK(naive.score_bytes == 2.0 * 32 * 4096 * 4096 * 8);
  CHECK(naive.activation_bytes == Approx(flash + 32 * naive.score_bytes));
  o.checkpointing = Checkpointing::kSelective;
  const TrainingSize selective = trained(o);
  CHECK(selective.activation_bytes == Approx(flash + naive.score_bytes));
  // Korthikanti et al.: 2.7 % more FLOPs for GPT-3 with 2048 tokens. Here s/6h of the forward.
  const TrainingSize gpt3 = [&] {
    o.batch = 1;
    o.context = 2048;
    return trained(o, training_shape(12288, 96, 96));
  }();
  CHECK(gpt3.compute_factor() == Approx(1.009).epsilon(0.002));
  CHECK(gpt3.recompute_flops / gpt3.forward_flops == Approx(0.027).epsilon(0.05));
}

TEST_CASE("offloading moves bytes and says whether they hide", "[training]") {
  TrainingOptions o = sequences(8, 4096);
  const TrainingShape shape = training_shape(load_model("llama-3-8b"));
  const TrainingSize none = trained(o, shape);
  o.offload = OptimizerOffload::kCpu;
  const TrainingSize cpu = trained(o, shape);
  CHECK(cpu.host_bytes == 14 * 8030261248.0);
  CHECK(cpu.hbm_bytes == Approx(none.hbm_bytes - cpu.host_bytes));
  REQUIRE(cpu.transfers.size() == 2);
  CHECK(cpu.transfers[0].seconds == Approx(2 * 8030261248.0 / 64e9));
  CHECK(cpu.transfers[0].hidden());
  CHECK(cpu.step_s == none.step_s);
  o.offload = OptimizerOffload::kNvme;
  const TrainingSize nvme = trained(o, shape);
  REQUIRE(nvme.transfers.size() == 3);
  const Transfer& states = nvme.transfers[2];
  CHECK(states.seconds == Approx(12 * 8030261248.0 * (1 / 6.9e9 + 1 / 4.1e9)));
  CHECK_FALSE(states.hidden());
  CHECK(nvme.step_s == Approx(none.step_s + states.seconds - nvme.backward_s));
  o.nvme_read_bytes_per_s = o.nvme_write_bytes_per_s = 1e12;
  CHECK(trained(o, shape).step_s == none.step_s);
}

TEST_CASE("a small batch leaves nothing to hide behind", "[training]") {
  TrainingOptions o = sequences(1, 64);
  o.offload = OptimizerOffload::kCpu;
  const TrainingSize size = trained(o, training_shape(load_model("llama-3-8b")));
  for (const Transfer& transfer : size.transfers) CHECK_FALSE(transfer.hidden());
  CHECK(size.step_s > 10 * (size.forward_s + size.backward_s));
}

TEST_CASE("activations that wait in CPU memory leave two layers", "[training]") {
  TrainingOptions o = sequences(8, 4096);
  const TrainingSize none = trained(o);
  o.offload_activations = true;
  const TrainingSize moved = trained(o);
  CHECK(moved.host_bytes == Approx(30 * none.layer_bytes));
  CHECK(moved.hbm_bytes == Approx(none.hbm_bytes - 30 * none.layer_bytes));
  REQUIRE(moved.transfers.size() == 2);
  CHECK(moved.transfers[0].behind == "forward");
  CHECK(moved.transfers[1].behind == "backward");
  CHECK(moved.transfers[0].seconds == Approx(moved.host_bytes / 64e9));
}

TEST_CASE("a model's own activation factor", "[training]") {
  // Llama-3-8B: 4 inputs, Q and its result 2, K and V 0.5, three times 3.5 hidden in the MLP.
  CHECK(activation_factor_of(load_model("llama-3-8b")) == Approx(17));
  // Mixtral runs two of its experts.
  CHECK(activation_factor_of(load_model("mixtral-8x7b")) == Approx(6.5 + 2 * 10.5));
  CHECK_THROWS_AS(activation_factor_of(load_model("deepseek-v3")), InputError);
}

TEST_CASE("training options out of range are refused", "[training]") {
  CHECK(refuses(sequences(0, 4096)));
  CHECK(refuses(sequences(8, -1)));
  const auto changed = [](auto change) {
    TrainingOptions o;
    change(o);
    return refuses(o);
  };
  CHECK_FALSE(refuses(TrainingOptions{}));
  CHECK(changed([](TrainingOptions& o) { o.activation_factor = 0; }));
  CHECK(changed([](TrainingOptions& o) { o.mfu = 1.1; }));
  CHECK(changed([](TrainingOptions& o) { o.mfu = std::nan(""); }));
  CHECK(changed([](TrainingOptions& o) { o.nvme_read_bytes_per_s = -1; }));
  CHECK(changed([](TrainingOptions& o) { o.segments = 4; }));
  CHECK(changed([](TrainingOptions& o) {
    o.checkpointing = Checkpointing::kFull;
    o.segments = 33;
  }));
  CHECK_THROWS_AS(parse_checkpointing("ful"), InputError);
  CHECK_THROWS_AS(parse_optimizer_offload("disk"), InputError);
}

TEST_CASE("property: checkpointing saves memory, FlashAttention too, and longer takes more",
          "[training]") {
  for (const std::int64_t layers : {2, 3, 7, 32, 61, 126}) {
    for (const std::int64_t context : {128, 2048, 65'536}) {
      for (const bool flash : {true, false}) {
        TrainingOptions o = sequences(3, context);
        o.flash_attention = flash;
        const TrainingShape shape = training_shape(2048, layers, 16);
        const TrainingSize none = trained(o, shape);
        INFO("L " << layers << " s " << context << " flash " << flash);
        o.context *= 2;
        CHECK(trained(o, shape).activation_bytes >= 2 * none.activation_bytes);
        o.context = context;
        o.checkpointing = Checkpointing::kSelective;
        const TrainingSize selective = trained(o, shape);
        CHECK(selective.activation_bytes <= none.activation_bytes);
        o.checkpointing = Checkpointing::kFull;
        const TrainingSize full = trained(o, shape);
        CHECK(full.activation_bytes < none.activation_bytes);
        CHECK(full.compute_factor() >= selective.compute_factor());
        o.checkpointing = Checkpointing::kNone;
        o.flash_attention = true;
        CHECK(trained(o, shape).activation_bytes <= none.activation_bytes);
        for (const OptimizerOffload place : {OptimizerOffload::kCpu, OptimizerOffload::kNvme}) {
          o.offload = place;
          o.offload_activations = true;
          const TrainingSize moved = trained(o, shape);
          CHECK(moved.hbm_bytes >= moved.weight_bytes);
          CHECK(moved.step_s >= moved.forward_s + moved.backward_s);
        }
      }
    }
  }
}
