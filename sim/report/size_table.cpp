// The tables of `simulate size`.
#include <fmt/format.h>

#include <algorithm>

#include "report/result_table.hpp"
#include "report/size_report.hpp"

namespace servesim {
namespace {

std::string gb_text(double bytes) {
  const double value = bytes * 1e-9;
  return value < 99.995 ? fmt::format("{:.2f}", value) : fmt::format("{:.1f}", value);
}

std::string fits_text(bool fits) {
  return fits ? "yes" : "no";
}

std::string batch_text(const std::optional<std::int64_t>& batch) {
  return batch ? with_thousands(*batch) : "none";
}

std::string deployment_text(const SizeRow& row) {
  const std::int64_t gpus = row.query.memory.tensor_parallel;
  std::string text = fmt::format("{} · {} x {}", row.model, gpus, row.hardware);
  if (gpus > 1) text += fmt::format(" (TP {})", gpus);
  if (row.quantization != "none") text += fmt::format(" · {} weights", row.quantization);
  if (row.kv_cache_dtype != "auto") text += fmt::format(" · {} KV", row.kv_cache_dtype);
  return text;
}

/// What all rows have in common; what differs stands in columns.
std::string common_text(const std::vector<SizeRow>& rows) {
  if (rows.front().varied.empty()) return deployment_text(rows.front());
  const auto varies = [&](const char* name) {
    const auto& varied = rows.front().varied;
    return std::any_of(varied.begin(), varied.end(),
                       [&](const auto& one) { return one.first == name; });
  };
  std::string text;
  const auto add = [&](const char* name, const std::string& value) {
    if (varies(name) || value.empty()) return;
    text += fmt::format("{}{}", text.empty() ? "" : " · ", value);
  };
  const SizeRow& row = rows.front();
  add("model", row.model);
  add("hardware", row.hardware);
  add("tensor-parallel-size", fmt::format("TP {}", row.query.memory.tensor_parallel));
  if (row.quantization != "none") add("quantization", row.quantization + " weights");
  if (row.kv_cache_dtype != "auto") add("kv-cache-dtype", row.kv_cache_dtype + " KV");
  return text;
}

void add_columns(TextTable& table, const SizeRow& row) {
  for (const auto& [name, value] : row.varied) table.add_column("", name, false);
  table.add_column("", "context", true);
  table.add_column("", "batch", true);
  table.add_column("GB", "weights", true);
  table.add_column("GB", "KV", true);
  table.add_column("GB", "total", true);
  table.add_column("GB", "usable", true);
  table.add_column("KV", "% weights", true, 2);
  table.add_column("", "fits", true);
  table.add_column("max", "batch", true);
  table.add_column("batch 1", "tok/s <=", true, 1);
  table.add_column("step", "ms >=", true, 3);
  table.add_column("", "FLOP/byte", true, 4);
  table.add_column("ridge", "batch", true, 5);
}

void add_row(TextTable& table, const SizeRow& row) {
  const DeploymentSize& size = row.size;
  std::vector<TextCell> cells;
  for (const auto& [name, value] : row.varied) cells.push_back({value});
  for (std::string text :
       {with_thousands(row.query.context), with_thousands(row.query.batch),
        gb_text(size.weight_bytes), gb_text(size.kv_bytes), gb_text(size.total_bytes),
        gb_text(size.usable_bytes), fmt::format("{:.0f}%", 100 * size.kv_bytes / size.weight_bytes),
        fits_text(size.fits()), with_thousands(size.max_batch),
        short_number(size.decode_ceiling_tokens_per_s), short_number(size.step_floor_s * 1e3),
        short_number(size.work.intensity()), batch_text(size.ridge_batch)}) {
    cells.push_back({std::move(text)});
  }
  table.add_row(std::move(cells));
}

/// The budget of one GPU, the ridge, as lines.
std::string detail_text(const SizeRow& row) {
  const DeploymentSize& size = row.size;
  std::string text = "\n Each GPU:\n";
  for (const std::string& line : size.budget.describe()) text += fmt::format("   {}\n", line);
  text += fmt::format(
      "\n Ridge {:.0f} FLOP/byte; this step {:.1f}, its linear layers {:.1f}. The linear layers "
      "reach the ridge at batch {}, the whole step with its KV at {}.\n",
      size.ridge, size.work.intensity(), size.linear_intensity, batch_text(size.ridge_batch),
      batch_text(size.ridge_batch_with_kv));
  return text;
}

std::string curve_text(const SizeRow& row, const TextStyle& style) {
  if (row.curve.empty()) return {};
  TextTable table;
  for (const char* heading : {"batch", "step ms", "tokens/s", "per user", "limited by"}) {
    table.add_column("", heading, std::string_view(heading) != "limited by");
  }
  for (const BatchPoint& point : row.curve) {
    table.add_row({{with_thousands(point.batch)},
                   {fmt::format("{:.2f}", point.step_s * 1e3)},
                   {short_number(point.tokens_per_s)},
                   {short_number(point.tokens_per_s_per_user)},
                   {std::string(point.bound)}});
  }
  const bool full = row.curve.back().batch == row.size.max_batch;
  return fmt::format("\n Decoding at {} tokens of context, up to {} ({}):\n{}",
                     with_thousands(row.query.context),
                     full ? "a full KV pool" : "the ridge of the linear layers",
                     deployment_text(row), table.render(style));
}

std::string changes_text(const SizeRow& row, const TextStyle& style) {
  if (row.what_first.empty()) return {};
  TextTable table;
  table.add_column("", "change first", false);
  table.add_column("", "with", false);
  for (const char* heading : {"weights", "KV", "total", "usable"}) {
    table.add_column("GB", heading, true);
  }
  table.add_column("", "fits", true);
  table.add_column("max", "batch", true);
  table.add_column("step", "ms >=", true);
  for (const SizeChange& change : row.what_first) {
    table.add_row({{change.change},
                   {change.flags},
                   {gb_text(change.weight_bytes)},
                   {gb_text(change.kv_bytes)},
                   {gb_text(change.total_bytes)},
                   {gb_text(change.usable_bytes)},
                   {fits_text(change.fits)},
                   {with_thousands(change.max_batch)},
                   {short_number(change.step_floor_s * 1e3)}});
  }
  return "\n It does not fit. One change at a time:\n" + table.render(style);
}

}  // namespace

std::string warning_lines(const std::vector<std::string>& warnings, const TextStyle& style) {
  std::string text;
  for (auto warning = warnings.begin(); warning != warnings.end(); ++warning) {
    if (std::find(warnings.begin(), warning, *warning) != warning) continue;
    text += fmt::format(" {} {}\n", paint("!", kYellow, style), *warning);
  }
  return text.empty() ? text : "\n" + text;
}

std::string size_table(const std::vector<SizeRow>& rows, bool curves, const TextStyle& style) {
  if (rows.empty()) return {};
  TextTable table;
  add_columns(table, rows.front());
  for (const SizeRow& row : rows) add_row(table, row);
  std::string text =
      fmt::format("\n {}\n\n{}", paint(common_text(rows), kBold, style), table.render(style));
  if (rows.size() == 1) text += detail_text(rows.front());
  if (rows.size() == 1 || curves) {
    for (const SizeRow& row : rows) text += changes_text(row, style) + curve_text(row, style);
  }
  std::vector<std::string> warnings;
  for (const SizeRow& row : rows) {
    warnings.insert(warnings.end(), row.warnings.begin(), row.warnings.end());
  }
  return text + warning_lines(warnings, style);
}

}  // namespace servesim
