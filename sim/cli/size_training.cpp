// simulate size --training.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "cli/outputs.hpp"
#include "cli/size_flags.hpp"
#include "cli/terminal.hpp"
#include "core/error.hpp"
#include "core/units.hpp"
#include "hardware/hardware_loader.hpp"
#include "model/model_loader.hpp"
#include "report/size_report.hpp"

namespace servesim {
namespace {

constexpr std::size_t kMostTrainingRows = 100'000;
constexpr std::int64_t kUsualHeadSize = 128;

const std::vector<Flag>& training_flags() {
  static const std::vector<Flag> kAll{
      {"hidden-size", "N", "A plain transformer of this width, instead of --model", Arity::kOne},
      {"num-layers", "N", "Its layers", Arity::kOne},
      {"num-heads", "N", "Its attention heads [hidden size / 128]", Arity::kOne},
      {"activation-factor", "X|model",
       "Values of the hidden size kept per token and layer; model: counted from its dimensions "
       "[16]",
       Arity::kOne},
      {"checkpointing", "NAME", "none|selective|full; takes a list [none]", Arity::kEach},
      {"checkpoint-segments", "N", "Segments of full checkpointing [root of the layers]",
       Arity::kOne},
      {"flash-attention", "", "Scores are not stored [on]", Arity::kNone},
      {"no-flash-attention", "", "Scores are stored", Arity::kNone},
      {"dropout", "", "Keep the masks of dropout too", Arity::kNone},
      {"offload", "NAME", "Gradients and optimiser states: none|cpu|nvme; takes a list [none]",
       Arity::kEach},
      {"offload-activations", "", "Activations wait in CPU memory", Arity::kNone},
      {"mfu", "X", "Share of the 16-bit peak that training reaches [0.4]", Arity::kOne},
      {"nvme-read-bandwidth", "SIZE/s", "[6.9GB/s]", Arity::kOne},
      {"nvme-write-bandwidth", "SIZE/s", "[4.1GB/s]", Arity::kOne}};
  return kAll;
}

/// What is trained: its dimensions, the values it keeps per token and layer when these are to be
/// counted, its own longest context (0: none).
struct Trained {
  TrainingShape shape;
  double activation_factor = 0;
  std::int64_t max_position = 0;
};

std::int64_t dimension(const FlagSet& flags, const std::string& name, std::int64_t most) {
  if (!flags.given(name)) {
    throw InputError(
        fmt::format("--{} is missing: --hidden-size and --num-layers go together", name));
  }
  return parse_integer(flags.value(name), "--" + name, 1, most);
}

std::vector<Trained> trained_by_dimensions(const FlagSet& flags) {
  if (flags.given("model")) {
    throw InputError("--model and --hidden-size, --num-layers, --num-heads contradict each other");
  }
  const std::int64_t hidden = dimension(flags, "hidden-size", 10'000'000);
  const std::int64_t layers = dimension(flags, "num-layers", 100'000);
  const std::int64_t heads = flags.given("num-heads")
                                 ? dimension(flags, "num-heads", hidden)
                                 : std::max<std::int64_t>(1, hidden / kUsualHeadSize);
  if (hidden % heads != 0) {
    throw InputError(fmt::format("--num-heads {}: must divide --hidden-size {}", heads, hidden));
  }
  if (flags.value("activation-factor") == "model") {
    throw InputError("--activation-factor model needs --model");
  }
  return {{training_shape(hidden, layers, heads), 0, 0}};
}

std::vector<Trained> trained_models(const FlagSet& flags) {
  for (const char* name : {"hidden-size", "num-layers", "num-heads"}) {
    if (flags.given(name)) return trained_by_dimensions(flags);
  }
  const bool counted = flags.value("activation-factor") == "model";
  std::vector<Trained> all;
  for (const std::string& name : word_list(flags, "model", "llama-3.1-8b")) {
    const ModelSpec model = load_model(name);
    all.push_back(
        {training_shape(model), counted ? activation_factor_of(model) : 0, model.max_position});
  }
  return all;
}

TrainingOptions common_options(const FlagSet& flags) {
  TrainingOptions o;
  const auto read = [&](const char* name, double& value) {
    if (flags.given(name)) value = parse_number(flags.value(name), std::string("--") + name);
  };
  if (flags.value("activation-factor") != "model") read("activation-factor", o.activation_factor);
  read("mfu", o.mfu);
  if (flags.given("nvme-read-bandwidth")) {
    o.nvme_read_bytes_per_s =
        parse_bandwidth(flags.value("nvme-read-bandwidth"), "nvme-read-bandwidth");
  }
  if (flags.given("nvme-write-bandwidth")) {
    o.nvme_write_bytes_per_s =
        parse_bandwidth(flags.value("nvme-write-bandwidth"), "nvme-write-bandwidth");
  }
  if (flags.given("flash-attention") && flags.given("no-flash-attention")) {
    throw InputError("--flash-attention and --no-flash-attention contradict each other");
  }
  o.flash_attention = !flags.given("no-flash-attention");
  o.dropout = flags.given("dropout");
  o.offload_activations = flags.given("offload-activations");
  if (flags.given("checkpoint-segments")) {
    o.segments =
        parse_integer(flags.value("checkpoint-segments"), "--checkpoint-segments", 1, 100'000);
  }
  return o;
}

/// The product of the lists that are no dimension of the model.
std::vector<TrainingOptions> option_product(const FlagSet& flags) {
  std::vector<TrainingOptions> all;
  const std::vector<std::int64_t> batches = size_list(flags, "batch", 1);
  const std::vector<std::string> ways = word_list(flags, "checkpointing", "none");
  const std::vector<std::string> places = word_list(flags, "offload", "none");
  TrainingOptions o = common_options(flags);
  for (const std::int64_t context : size_list(flags, "context", 2048)) {
    for (const std::int64_t batch : batches) {
      for (const std::string& way : ways) {
        for (const std::string& place : places) {
          o.context = context;
          o.batch = batch;
          o.checkpointing = parse_checkpointing(way);
          o.offload = parse_optimizer_offload(place);
          all.push_back(o);
        }
      }
    }
  }
  return all;
}

TrainingRow training_row(const Trained& trained, const HardwareSpec& hardware, TrainingOptions o) {
  if (trained.activation_factor > 0) o.activation_factor = trained.activation_factor;
  TrainingRow row{hardware.name, trained.shape, o, size_training(trained.shape, hardware, o), {}};
  if (trained.max_position > 0 && o.context > trained.max_position) {
    row.warnings.push_back(fmt::format("context {} is more than the {} tokens of {}", o.context,
                                       trained.max_position, trained.shape.name));
  }
  return row;
}

}  // namespace

const std::vector<std::string>& training_flag_names() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const Flag& flag : training_flags()) names.push_back(flag.name);
    return names;
  }();
  return kNames;
}

void add_training_flags(FlagSet& flags) {
  for (const Flag& flag : training_flags()) flags.add(flag);
}

int run_size_training(const FlagSet& flags, const std::string& command) {
  const std::vector<Trained> models = trained_models(flags);
  const std::vector<std::string> gpus = word_list(flags, "hardware", "h100-sxm");
  const std::vector<TrainingOptions> options = option_product(flags);
  if (models.size() * gpus.size() * options.size() > kMostTrainingRows) {
    throw InputError(fmt::format("the lists ask for more than {} rows", kMostTrainingRows));
  }
  std::vector<TrainingRow> rows;
  for (const Trained& trained : models) {
    for (const std::string& gpu : gpus) {
      const HardwareSpec hardware = load_hardware(gpu);
      for (const TrainingOptions& o : options) rows.push_back(training_row(trained, hardware, o));
    }
  }
  write_sizes(flags, training_table(rows, style_for(STDOUT_FILENO)), training_json(rows, command));
  return 0;
}

}  // namespace servesim
