// The table of `simulate size --training`.
#include <fmt/format.h>

#include "report/result_table.hpp"
#include "report/size_report.hpp"

namespace servesim {
namespace {

std::string training_gb(double bytes) {
  return short_number(bytes * 1e-9);
}

void add_training_row(TextTable& table, const TrainingRow& row) {
  const TrainingSize& s = row.size;
  const std::string segments = s.segments > 0 ? fmt::format(" ({})", s.segments) : "";
  table.add_row({{row.shape.name},
                 {row.hardware},
                 {with_thousands(row.options.context)},
                 {with_thousands(row.options.batch)},
                 {fmt::format("{}{}", name_of(row.options.checkpointing), segments)},
                 {std::string(name_of(row.options.offload))},
                 {training_gb(s.weight_bytes)},
                 {training_gb(s.gradient_bytes)},
                 {training_gb(s.optimizer_bytes)},
                 {training_gb(s.layer_bytes)},
                 {training_gb(s.activation_bytes)},
                 {training_gb(s.logit_bytes)},
                 {training_gb(s.hbm_bytes)},
                 {s.fits() ? "yes" : "no"},
                 {fmt::format("{:.2f}x", s.compute_factor())},
                 {short_number(s.step_s)}});
}

std::string transfers_text(const TrainingRow& row, const TextStyle& style) {
  if (row.size.transfers.empty()) return {};
  TextTable table;
  table.add_column("", "moved each step", false);
  table.add_column("", "over", false);
  for (const char* heading : {"GB", "seconds"}) table.add_column("", heading, true);
  table.add_column("", "behind", false);
  table.add_column("", "seconds", true);
  table.add_column("", "exposed", true);
  for (const Transfer& transfer : row.size.transfers) {
    table.add_row({{std::string(transfer.what)},
                   {std::string(transfer.link)},
                   {training_gb(transfer.bytes)},
                   {short_number(transfer.seconds)},
                   {std::string(transfer.behind)},
                   {short_number(transfer.compute_s)},
                   {transfer.hidden() ? "hidden" : short_number(transfer.exposed_s())}});
  }
  return fmt::format("\n {}, {} x {} tokens, checkpointing {}, {:.1f} GB moved out of HBM:\n{}",
                     row.shape.name, row.options.batch, with_thousands(row.options.context),
                     name_of(row.options.checkpointing), row.size.host_bytes * 1e-9,
                     table.render(style));
}

}  // namespace

std::string training_table(const std::vector<TrainingRow>& rows, const TextStyle& style) {
  if (rows.empty()) return {};
  TextTable table;
  table.add_column("", "model", false);
  table.add_column("", "hardware", false, 1);
  for (const char* heading : {"context", "batch"}) table.add_column("", heading, true);
  for (const char* heading : {"checkpointing", "offload"}) table.add_column("", heading, false);
  for (const char* heading :
       {"weights", "gradients", "AdamW", "a layer", "activations", "logits", "in HBM"}) {
    table.add_column("GB", heading, true);
  }
  table.add_column("", "fits", true);
  for (const char* heading : {"FLOPs", "step s"}) table.add_column("", heading, true);
  for (const TrainingRow& row : rows) add_training_row(table, row);
  const TrainingRow& first = rows.front();
  std::string text = fmt::format(
      "\n Training in 16 bits with AdamW, {}, {:g} values of the hidden size kept per token and "
      "layer, MFU {:g}\n\n{}",
      first.options.flash_attention ? "FlashAttention" : "scores stored",
      first.options.activation_factor, first.options.mfu, table.render(style));
  for (const TrainingRow& row : rows) text += transfers_text(row, style);
  std::vector<std::string> warnings;
  for (const TrainingRow& row : rows) {
    warnings.insert(warnings.end(), row.warnings.begin(), row.warnings.end());
  }
  return text + warning_lines(warnings, style);
}

}  // namespace servesim
