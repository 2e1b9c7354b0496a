#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "cli/axes.hpp"
#include "cli/inputs.hpp"
#include "cli/outputs.hpp"
#include "cli/size_flags.hpp"
#include "cli/terminal.hpp"
#include "cli/verbs.hpp"
#include "core/error.hpp"
#include "core/units.hpp"
#include "cost/server_defaults.hpp"
#include "hardware/hardware_loader.hpp"
#include "model/model_loader.hpp"
#include "report/size_report.hpp"

namespace servesim {
namespace {

constexpr std::int64_t kMostSized = 1'000'000'000;
constexpr std::size_t kMostRows = 100'000;

const std::vector<std::string> kSizeAxes{
    "model",         "hardware",       "tensor-parallel-size",   "dtype",
    "quantization",  "kv-cache-dtype", "num-kv-heads",           "gpu-memory-utilization",
    "max-model-len", "max-num-seqs",   "max-num-batched-tokens", "block-size"};
/// Those of them that training takes too.
const std::vector<std::string> kTrainingAxes{"model", "hardware"};

/// Settings that are read once and used by many rows.
class SizeInputs {
 public:
  explicit SizeInputs(const FlagSet& flags) : flags_(flags) {}

  const ModelSpec& model(const std::string& name) {
    const auto found = models_.find(name);
    return found != models_.end() ? found->second
                                  : models_.emplace(name, load_model(name)).first->second;
  }
  const HardwareSpec& hardware(const std::string& name) {
    const auto found = hardware_.find(name);
    return found != hardware_.end()
               ? found->second
               : hardware_.emplace(name, sized_hardware(flags_, name)).first->second;
  }

 private:
  const FlagSet& flags_;
  std::map<std::string, ModelSpec> models_;
  std::map<std::string, HardwareSpec> hardware_;
};

MemoryOptions memory_options(const RunSpec& spec, const HardwareSpec& hardware) {
  const ServerDefaults defaults = server_defaults(hardware.memory_bytes, hardware.is_a100());
  MemoryOptions o;
  o.weights = parse_weight_format(spec.quantization.value_or("none"));
  o.kv = parse_kv_format(spec.kv_cache_dtype.value_or("auto"));
  o.tensor_parallel = spec.tensor_parallel_size.value_or(1);
  o.gpu_memory_utilization = spec.gpu_memory_utilization.value_or(o.gpu_memory_utilization);
  o.max_num_batched_tokens = spec.max_num_batched_tokens.value_or(defaults.max_num_batched_tokens);
  o.max_num_seqs =
      spec.max_num_seqs.value_or(std::min(defaults.max_num_seqs, o.max_num_batched_tokens));
  if (o.max_num_seqs > o.max_num_batched_tokens) {
    throw InputError(fmt::format("max_num_batched_tokens {} must be at least max_num_seqs {}",
                                 o.max_num_batched_tokens, o.max_num_seqs));
  }
  o.block_size = spec.block_size.value_or(o.block_size);
  o.max_model_len = spec.max_model_len.value_or(0);
  return o;
}

std::vector<std::string> warnings_of(const ModelSpec& model, const SizeRow& row) {
  std::vector<std::string> warnings;
  const std::int64_t longest = row.size.budget.max_model_len;
  if (row.query.context > longest) {
    warnings.push_back(
        fmt::format("context {} is more than max_model_len {} of {}: vLLM refuses such a request",
                    row.query.context, longest, row.model));
  }
  if (row.query.batch > row.query.memory.max_num_seqs) {
    warnings.push_back(
        fmt::format("batch {} is more than max_num_seqs {}: vLLM runs no more at once; see "
                    "--max-num-seqs",
                    row.query.batch, row.query.memory.max_num_seqs));
  }
  if (model.windowed_layers > 0) {
    warnings.push_back(
        fmt::format("{}: {} of {} layers see a window of {} tokens; their KV is counted in full, "
                    "as with prefix caching",
                    row.model, model.windowed_layers, model.layers, model.sliding_window));
  }
  return warnings;
}

SizeRow size_row(const PlannedRun& planned, std::int64_t context, std::int64_t batch,
                 SizeInputs& inputs) {
  const RunSpec& spec = planned.spec;
  check_dtype(spec.dtype.value_or("auto"));
  const HardwareSpec& hardware = inputs.hardware(spec.hardware.value_or("h100-sxm"));
  ModelSpec model = inputs.model(spec.model.value_or("llama-3.1-8b"));
  if (spec.num_kv_heads) model.override_kv_heads(*spec.num_kv_heads);
  SizeRow row;
  row.model = model.name;
  row.hardware = hardware.name;
  row.dtype = spec.dtype.value_or("auto");
  row.quantization = spec.quantization.value_or("none");
  row.kv_cache_dtype = spec.kv_cache_dtype.value_or("auto");
  row.num_kv_heads = model.mla ? 0 : model.kv_heads;
  row.query = {memory_options(spec, hardware), context, batch};
  row.size = size_deployment(model, hardware, row.query);
  row.what_first = what_first(model, hardware, row.query);
  row.varied = planned.varied;
  row.warnings = warnings_of(model, row);
  try {
    row.curve = batch_curve(model, hardware, row.query, row.size);
  } catch (const InputError& error) {
    row.warnings.push_back(fmt::format("no throughput curve: {}", error.what()));
  }
  return row;
}

void check_training_flags(const FlagSet& flags) {
  const bool training = flags.given("training");
  for (const std::string& name : training_flag_names()) {
    if (!training && flags.given(name)) {
      throw InputError(fmt::format("--{} belongs to --training", name));
    }
  }
  if (!training) return;
  std::vector<std::string> serving = kSizeAxes;
  serving.insert(serving.end(), {"curve", "hbm-bandwidth"});
  for (const std::string& name : serving) {
    const bool shared =
        std::find(kTrainingAxes.begin(), kTrainingAxes.end(), name) != kTrainingAxes.end();
    if (!shared && flags.given(name)) {
      throw InputError(fmt::format("--{} is about serving; --training does not take it", name));
    }
  }
}

template <typename T>
void refuse_twice(const std::string& flag, const std::vector<T>& values) {
  for (auto value = values.begin(); value != values.end(); ++value) {
    if (std::find(values.begin(), value, *value) != value) {
      throw InputError(fmt::format("--{} names '{}' twice", flag, *value));
    }
  }
}

}  // namespace

std::vector<std::string> word_list(const FlagSet& flags, const std::string& name,
                                   const std::string& fallback) {
  std::vector<std::string> words;
  for (const std::string& value : flags.values(name)) {
    for (std::string& part : split_list(name, value)) words.push_back(std::move(part));
  }
  if (words.empty()) words.push_back(fallback);
  refuse_twice(name, words);
  return words;
}

std::vector<std::int64_t> size_list(const FlagSet& flags, const std::string& name,
                                    std::int64_t fallback) {
  std::vector<std::int64_t> sizes;
  for (const std::string& word : word_list(flags, name, fmt::format("{}", fallback))) {
    sizes.push_back(parse_integer(word, "--" + name, 1, kMostSized));
  }
  refuse_twice(name, sizes);
  return sizes;
}

double parse_bandwidth(const std::string& text, const std::string& flag) {
  const bool per_second = text.ends_with("/s");
  return static_cast<double>(
      parse_bytes(text.substr(0, text.size() - (per_second ? 2 : 0)), "--" + flag));
}

HardwareSpec sized_hardware(const FlagSet& flags, const std::string& name) {
  HardwareSpec hardware = load_hardware(name);
  if (flags.given("hbm-bandwidth")) {
    hardware.hbm_bytes_per_s = parse_bandwidth(flags.value("hbm-bandwidth"), "hbm-bandwidth");
  }
  return hardware;
}

void write_sizes(const FlagSet& flags, const std::string& table, const std::string& json) {
  const std::string path = flags.value("json");
  if (path == "-") {
    write_stdout(json);
    return;
  }
  if (!path.empty()) {
    AtomicFile file(path);
    file.write(json);
    file.commit();
  }
  write_stdout(table);
}

FlagSet size_flags() {
  FlagSet flags("size",
                "Will it fit, and how fast can it be at most: the HBM budget as a calculator.\n"
                "Lists give the product; sums are over the tensor-parallel GPUs, in decimal GB.");
  flags.group("What to size (each takes a list)");
  flags.add({"context", "N", "Tokens of each sequence [2048]", Arity::kEach});
  flags.add({"batch", "N", "Sequences at once [1]", Arity::kEach});
  flags.group("The engine (each takes a list)");
  add_axes(flags, kSizeAxes);
  flags.add(
      {"hbm-bandwidth", "SIZE/s", "HBM rate of a GPU, as 2TB/s [the profile's]", Arity::kOne});
  flags.group("Training");
  flags.add(
      {"training", "", "Size training instead: AdamW in mixed precision on one GPU", Arity::kNone});
  add_training_flags(flags);
  flags.group("Results");
  flags.add(
      {"json", "FILE", "Write all rows as JSON; - is stdout, instead of the table", Arity::kOne});
  flags.add({"curve", "", "Throughput against latency of every row, not of a single one only",
             Arity::kNone});
  flags.footer(
      "Examples:\n"
      "  simulate size --model llama-3-8b --context 2048,8192 --batch 1,32\n"
      "  simulate size --model llama-3.1-70b --tensor-parallel-size 2,4 --quantization none,fp8\n"
      "  simulate size --training --model llama-3-8b --batch 8 --context 4096 --checkpointing "
      "none,full");
  return flags;
}

int run_size(const std::vector<std::string>& arguments, const std::string& command) {
  FlagSet flags = size_flags();
  if (!flags.parse(arguments)) {
    write_stdout(flags.help());
    return 0;
  }
  check_training_flags(flags);
  const std::vector<AxisValues> given = given_axes(flags);
  check_distinct({{"--json", flags.value("json")}}, input_files(flags, given));
  if (flags.given("training")) return run_size_training(flags, command);
  const std::vector<std::int64_t> contexts = size_list(flags, "context", 2048);
  const std::vector<std::int64_t> batches = size_list(flags, "batch", 1);
  const std::vector<PlannedRun> planned = product(RunSpec{}, given);
  if (planned.size() * contexts.size() * batches.size() > kMostRows) {
    throw InputError(fmt::format("the lists ask for more than {} rows", kMostRows));
  }
  SizeInputs inputs(flags);
  std::vector<SizeRow> rows;
  for (const PlannedRun& run : planned) {
    for (const std::int64_t context : contexts) {
      for (const std::int64_t batch : batches) {
        rows.push_back(size_row(run, context, batch, inputs));
      }
    }
  }
  write_sizes(flags, size_table(rows, flags.given("curve"), style_for(STDOUT_FILENO)),
              size_json(rows, command));
  return 0;
}

}  // namespace servesim
