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
#include "cost/explain.hpp"
#include "hardware/hardware_loader.hpp"
#include "model/model_loader.hpp"
#include "report/result_table.hpp"

namespace servesim {
namespace {

constexpr std::int64_t kMostPerStep = 1'000'000'000;

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
  inputs.deployment.attention = parse_attention_kind(flags.value("attention", "flash"));
  if (flags.given("attention-top-k")) {
    inputs.deployment.attention_top_k =
        parse_integer(flags.value("attention-top-k"), "--attention-top-k", 1, kMostPerStep);
  }
  return inputs;
}

std::string parts_table(const StepExplanation& explained, const TextStyle& style) {
  TextTable table;
  for (const char* heading :
       {"component", "ms", "share", "limited by", "FLOP/byte", "MFU", "MBU"}) {
    table.add_column("", heading, std::string_view(heading) != "component");
  }
  const auto row = [&](std::string name, const PartExplanation& part) {
    table.add_row({{std::move(name)},
                   {fmt::format("{:.3f}", part.seconds * 1e3)},
                   {fmt::format("{:.1f}%", 100 * part.seconds / explained.total.seconds)},
                   {std::string(limit_name(part.limit))},
                   {part.intensity > 0 ? fmt::format("{:.1f}", part.intensity) : "-"},
                   {fmt::format("{:.1f}%", 100 * part.mfu)},
                   {fmt::format("{:.1f}%", 100 * part.mbu)}});
  };
  for (const PartExplanation& part : explained.parts) {
    row(std::string(kComponentNames[static_cast<std::size_t>(part.component)]), part);
  }
  row("step", explained.total);
  return table.render(style);
}

}  // namespace

FlagSet explain_flags() {
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
  flags.add({"attention", "NAME", "flash|naive [flash]", Arity::kOne});
  flags.add({"attention-top-k", "N", "Cached tokens a query reads at most [all]", Arity::kOne});
  flags.footer("Example:\n  simulate explain --batch 64 --context 2000 --prefill 512");
  return flags;
}

int run_explain(const std::vector<std::string>& arguments, const std::string&) {
  FlagSet flags = explain_flags();
  if (!flags.parse(arguments)) {
    write_stdout(flags.help());
    return 0;
  }
  const CostInputs inputs = inputs_of(flags);
  StepShape shape;
  shape.decode_seqs = parse_integer(flags.value("batch", "0"), "--batch", 0, kMostPerStep);
  shape.decode_tokens = shape.decode_seqs;
  shape.decode_context = shape.decode_seqs * parse_integer(flags.value("context", "1024"),
                                                           "--context", 0, kMostPerStep);
  std::vector<PrefillChunk> chunks;
  for (const std::string& text : flags.values("prefill")) chunks.push_back(parse_chunk(text));
  shape.chunks = chunks;
  shape.sampled = shape.decode_seqs + static_cast<std::int64_t>(chunks.size());
  if (shape.tokens() == 0) throw InputError("the step is empty: give --batch N or --prefill N");
  const double heat = parse_number(flags.value("heat", "0"), "--heat");
  if (heat < 0 || heat > 1) throw InputError("--heat: accepted: 0 to 1");

  const StepExplanation explained =
      explain(inputs.model, inputs.hardware, inputs.deployment, shape, Heat{heat});
  std::string text = fmt::format("\n {} on {} x {}: {} decoding, {} prompt tokens\n\n",
                                 inputs.model.name, inputs.deployment.tensor_parallel,
                                 inputs.hardware.name, with_thousands(shape.decode_seqs),
                                 with_thousands(shape.tokens() - shape.decode_tokens));
  text += parts_table(explained, style_for(STDOUT_FILENO));
  text += fmt::format(
      "\n {:.2f} TFLOP and {:.2f} GB of HBM traffic: {:.1f} FLOP per byte, with the ridge at "
      "{:.0f}. Host time is not "
      "part of the step.\n",
      explained.total.flops * 1e-12, explained.total.hbm_bytes * 1e-9, explained.total.intensity,
      explained.ridge);
  write_stdout(text);
  return 0;
}

}  // namespace servesim
