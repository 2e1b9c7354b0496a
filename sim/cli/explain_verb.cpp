#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "cli/flags.hpp"
#include "cli/outputs.hpp"
#include "cli/resolve.hpp"
#include "cli/terminal.hpp"
#include "cli/verbs.hpp"
#include "core/error.hpp"
#include "core/units.hpp"
#include "hardware/hardware_loader.hpp"
#include "model/model_loader.hpp"
#include "report/result_table.hpp"

namespace servesim {
namespace {

constexpr std::int64_t kMostPerStep = 1'000'000'000;

FlagSet declare_flags() {
  FlagSet flags("explain", "What one engine step costs, by component.");
  flags.group("The step");
  flags.add({"batch", "N", "Sequences that decode [0]", Arity::kOne});
  flags.add({"context", "N", "Cached tokens of each of them [1024]", Arity::kOne});
  flags.add({"prefill", "N[@P]",
             "A prompt chunk of N tokens, P of its prompt computed before; "
             "may be given again",
             Arity::kEach});
  flags.add({"heat", "X", "State of sustained compute, 0 (after a pause) to 1 [0]", Arity::kOne});
  flags.group("The engine");
  flags.add({"model", "NAME|FILE", "[llama-3.1-8b]", Arity::kOne});
  flags.add({"hardware", "NAME|FILE", "[h100-sxm]", Arity::kOne});
  flags.add({"tensor-parallel-size", "N", "[1]", Arity::kOne});
  flags.add({"quantization", "NAME", "none|fp8|int8|int4 [none]", Arity::kOne});
  flags.add({"kv-cache-dtype", "NAME", "auto|fp8|int8|int4 [auto]", Arity::kOne});
  flags.footer("Example:\n  simulate explain --batch 64 --context 2000 --prefill 512");
  return flags;
}

PrefillChunk parse_chunk(const std::string& text) {
  const std::size_t at = text.find('@');
  PrefillChunk chunk{parse_integer(text.substr(0, at), "--prefill", 1, kMostPerStep), 0};
  if (at != std::string::npos) {
    chunk.context = parse_integer(text.substr(at + 1), "--prefill N@P: P", 0, kMostPerStep);
  }
  return chunk;
}

CostInputs inputs_of(const FlagSet& flags) {
  CostInputs inputs;
  inputs.model = load_model(flags.value("model", "llama-3.1-8b"));
  inputs.hardware = load_hardware(flags.value("hardware", "h100-sxm"));
  inputs.deployment.tensor_parallel =
      parse_integer(flags.value("tensor-parallel-size", "1"), "--tensor-parallel-size", 1, 1024);
  inputs.deployment.weights = parse_weight_format(flags.value("quantization", "none"));
  inputs.deployment.kv = parse_kv_format(flags.value("kv-cache-dtype", "auto"));
  return inputs;
}

std::string cost_table(const StepCost& cost, const TextStyle& style) {
  TextTable table;
  table.add_column("", "component", false);
  table.add_column("", "ms", true);
  table.add_column("", "share", true);
  const double total = cost.total.seconds();
  for (std::size_t i = 0; i < kComponentCount; ++i) {
    if (cost.seconds[i] == 0) continue;
    table.add_row({{std::string(kComponentNames[i])},
                   {fmt::format("{:.3f}", cost.seconds[i] * 1e3)},
                   {fmt::format("{:.1f}%", 100 * cost.seconds[i] / total)}});
  }
  table.add_row({{"step"}, {fmt::format("{:.3f}", total * 1e3)}, {"100.0%"}});
  return table.render(style);
}

}  // namespace

int run_explain(const std::vector<std::string>& arguments) {
  FlagSet flags = declare_flags();
  if (!flags.parse(arguments)) {
    write_stdout(flags.help());
    return 0;
  }
  const CostInputs inputs = inputs_of(flags);
  StepShape shape;
  shape.decode_seqs = parse_integer(flags.value("batch", "0"), "--batch", 0, kMostPerStep);
  shape.decode_tokens = shape.decode_seqs;
  shape.decode_context =
      shape.decode_seqs * parse_integer(flags.value("context", "1024"), "--context", 0, kMostPerStep);
  std::vector<PrefillChunk> chunks;
  for (const std::string& text : flags.values("prefill")) chunks.push_back(parse_chunk(text));
  shape.chunks = chunks;
  shape.sampled = shape.decode_seqs + static_cast<std::int64_t>(chunks.size());
  if (shape.tokens() == 0) throw InputError("the step is empty: give --batch N or --prefill N");
  const double heat = parse_number(flags.value("heat", "0"), "--heat");
  if (heat < 0 || heat > 1) throw InputError("--heat: accepted: 0 to 1");

  Registries registries;
  register_builtins(registries);
  const std::unique_ptr<StepCostModel> model = registries.cost_models.at("roofline")(inputs);
  const StepCost cost = model->price(shape, Heat{heat});
  const double seconds = cost.total.seconds();
  const TextStyle style = style_for(STDOUT_FILENO);
  std::string text = fmt::format("\n {} on {} x {}: {} decoding, {} prompt tokens\n\n",
                                 inputs.model.name, inputs.deployment.tensor_parallel,
                                 inputs.hardware.name, with_thousands(shape.decode_seqs),
                                 with_thousands(shape.tokens() - shape.decode_tokens));
  text += cost_table(cost, style);
  text += fmt::format(
      "\n {:.2f} TFLOP ({:.1f}% of peak), {:.2f} GB of HBM traffic ({:.1f}% of peak), {:.1f} FLOP "
      "per byte\n limited by compute for {:.1f}% of the step\n",
      cost.flops * 1e-12, 100 * cost.flops / seconds / model->peak_flops(), cost.hbm_bytes * 1e-9,
      100 * cost.hbm_bytes / seconds / model->peak_bytes_per_s(), cost.flops / cost.hbm_bytes,
      100 * cost.compute_bound_s / seconds);
  write_stdout(text);
  return 0;
}

}  // namespace servesim
