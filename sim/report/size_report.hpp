/// What `simulate size` tells: tables for people, JSON for programs (docs/size.md).
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cost/deployment_size.hpp"
#include "cost/training_memory.hpp"
#include "report/text_table.hpp"

namespace servesim {

/// One deployment and what came of it.
struct SizeRow {
  std::string model, hardware, dtype, quantization, kv_cache_dtype;
  std::int64_t num_kv_heads = 0;  ///< 0: MLA
  SizeQuery query;
  DeploymentSize size;
  std::vector<SizeChange> what_first;
  std::vector<BatchPoint> curve;
  std::vector<std::string> warnings;
  /// Settings that differ between the rows, by name; the same names in each row.
  std::vector<std::pair<std::string, std::string>> varied;
};

/// Schema `servesim/size/v1`, two spaces of indentation, a final newline.
std::string size_json(const std::vector<SizeRow>& rows, const std::string& command);
/// A row per deployment; of a single one also its budget, its curve and what to change first; with
/// `curves` the curve of each.
std::string size_table(const std::vector<SizeRow>& rows, bool curves, const TextStyle& style);

/// One training run and what came of it.
struct TrainingRow {
  std::string hardware;
  TrainingShape shape;
  TrainingOptions options;
  TrainingSize size;
  std::vector<std::string> warnings;
};

/// Schema `servesim/size-training/v1`.
std::string training_json(const std::vector<TrainingRow>& rows, const std::string& command);
std::string training_table(const std::vector<TrainingRow>& rows, const TextStyle& style);

/// The warnings, a line each, no line twice.
std::string warning_lines(const std::vector<std::string>& warnings, const TextStyle& style);

}  // namespace servesim
