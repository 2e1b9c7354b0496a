// The JSON of `simulate size`. Sizes in decimal GB.
#include <nlohmann/json.hpp>

#include "report/result_json.hpp"
#include "report/size_report.hpp"

namespace servesim {
namespace {

using Ordered = nlohmann::ordered_json;

double gigabytes(double bytes) {
  return bytes * 1e-9;
}

Ordered batch_or_null(const std::optional<std::int64_t>& batch) {
  return batch ? Ordered(*batch) : Ordered(nullptr);
}

Ordered change_json(const SizeChange& change) {
  Ordered json;
  json["change"] = change.change;
  json["flags"] = change.flags;
  json["weights_gb"] = gigabytes(change.weight_bytes);
  json["kv_gb"] = gigabytes(change.kv_bytes);
  json["total_gb"] = gigabytes(change.total_bytes);
  json["usable_gb"] = gigabytes(change.usable_bytes);
  json["fits"] = change.fits;
  json["max_batch"] = change.max_batch;
  json["step_floor_ms"] = change.step_floor_s * 1e3;
  json["host_gb"] = gigabytes(change.host_bytes);
  return json;
}

Ordered curve_json(const std::vector<BatchPoint>& curve) {
  Ordered list = Ordered::array();
  for (const BatchPoint& point : curve) {
    list.push_back({{"batch", point.batch},
                    {"step_ms", point.step_s * 1e3},
                    {"tokens_per_s", point.tokens_per_s},
                    {"tokens_per_s_per_user", point.tokens_per_s_per_user},
                    {"bound", point.bound}});
  }
  return list;
}

void add_settings(Ordered& json, const SizeRow& row) {
  const MemoryOptions& memory = row.query.memory;
  json["model"] = row.model;
  json["hardware"] = row.hardware;
  json["context"] = row.query.context;
  json["batch"] = row.query.batch;
  json["dtype"] = row.dtype;
  json["quantization"] = row.quantization;
  json["kv_cache_dtype"] = row.kv_cache_dtype;
  json["num_kv_heads"] = row.num_kv_heads > 0 ? Ordered(row.num_kv_heads) : Ordered(nullptr);
  json["tensor_parallel_size"] = memory.tensor_parallel;
  json["block_size"] = memory.block_size;
  json["gpu_memory_utilization"] = memory.gpu_memory_utilization;
  json["max_model_len"] = row.size.budget.max_model_len;
  json["max_num_seqs"] = memory.max_num_seqs;
  json["max_num_batched_tokens"] = memory.max_num_batched_tokens;
}

void add_memory(Ordered& json, const DeploymentSize& size) {
  json["weights_gb"] = gigabytes(size.weight_bytes);
  json["kv_bytes_per_token"] = size.kv_bytes_per_token;
  json["kv_gb"] = gigabytes(size.kv_bytes);
  json["kv_padding_gb"] = gigabytes(size.kv_padding_bytes);
  json["kv_percent_of_weights"] = 100 * size.kv_bytes / size.weight_bytes;
  json["activation_gb"] = gigabytes(size.activation_bytes);
  json["workspace_gb"] = gigabytes(size.workspace_bytes);
  json["total_gb"] = gigabytes(size.total_bytes);
  json["hbm_gb"] = gigabytes(size.memory_bytes);
  json["usable_gb"] = gigabytes(size.usable_bytes);
  json["fits"] = size.fits();
  json["num_gpu_blocks"] = size.budget.num_gpu_blocks;
  json["max_batch"] = size.max_batch;
}

Ordered row_json(const SizeRow& row) {
  const DeploymentSize& size = row.size;
  Ordered json;
  add_settings(json, row);
  add_memory(json, size);
  json["decode_ceiling_tokens_per_s"] = size.decode_ceiling_tokens_per_s;
  json["step_floor_ms"] = size.step_floor_s * 1e3;
  json["arithmetic_intensity"] = size.work.intensity();
  json["linear_intensity"] = size.linear_intensity;
  json["ridge"] = size.ridge;
  json["ridge_batch"] = batch_or_null(size.ridge_batch);
  json["ridge_batch_with_kv"] = batch_or_null(size.ridge_batch_with_kv);
  Ordered& changes = json["what_first"] = Ordered::array();
  for (const SizeChange& change : row.what_first) changes.push_back(change_json(change));
  json["curve"] = curve_json(row.curve);
  json["warnings"] = row.warnings;
  return json;
}

Ordered transfers_json(const TrainingSize& size) {
  Ordered list = Ordered::array();
  for (const Transfer& transfer : size.transfers) {
    list.push_back({{"what", transfer.what},
                    {"link", transfer.link},
                    {"gb", gigabytes(transfer.bytes)},
                    {"seconds", transfer.seconds},
                    {"behind", transfer.behind},
                    {"compute_s", transfer.compute_s},
                    {"hidden", transfer.hidden()},
                    {"exposed_s", transfer.exposed_s()}});
  }
  return list;
}

void add_training_settings(Ordered& json, const TrainingRow& row) {
  const TrainingOptions& o = row.options;
  json["model"] = row.shape.name;
  json["hardware"] = row.hardware;
  json["context"] = o.context;
  json["batch"] = o.batch;
  json["hidden_size"] = row.shape.hidden;
  json["num_layers"] = row.shape.layers;
  json["num_heads"] = row.shape.heads;
  json["parameters"] = row.shape.parameters;
  json["activation_factor"] = o.activation_factor;
  json["flash_attention"] = o.flash_attention;
  json["dropout"] = o.dropout;
  json["checkpointing"] = name_of(o.checkpointing);
  json["checkpoint_segments"] =
      row.size.segments > 0 ? Ordered(row.size.segments) : Ordered(nullptr);
  json["offload"] = name_of(o.offload);
  json["offload_activations"] = o.offload_activations;
  json["mfu"] = o.mfu;
}

Ordered training_row_json(const TrainingRow& row) {
  const TrainingSize& size = row.size;
  Ordered json;
  add_training_settings(json, row);
  json["weights_gb"] = gigabytes(size.weight_bytes);
  json["gradients_gb"] = gigabytes(size.gradient_bytes);
  json["optimizer_gb"] = gigabytes(size.optimizer_bytes);
  json["activations_per_layer_gb"] = gigabytes(size.layer_bytes);
  json["scores_per_layer_gb"] = gigabytes(size.score_bytes);
  json["activations_gb"] = gigabytes(size.activation_bytes);
  json["logits_gb"] = gigabytes(size.logit_bytes);
  json["workspace_gb"] = gigabytes(size.workspace_bytes);
  json["total_gb"] = gigabytes(size.hbm_bytes + size.host_bytes);
  json["offloaded_gb"] = gigabytes(size.host_bytes);
  json["in_hbm_gb"] = gigabytes(size.hbm_bytes);
  json["hbm_gb"] = gigabytes(size.memory_bytes);
  json["fits"] = size.fits();
  json["step_tflop"] = (3 * size.forward_flops + size.recompute_flops) * 1e-12;
  json["compute_factor"] = size.compute_factor();
  json["forward_s"] = size.forward_s;
  json["backward_s"] = size.backward_s;
  json["transfers"] = transfers_json(size);
  json["step_s"] = size.step_s;
  json["warnings"] = row.warnings;
  return json;
}

template <typename Row, typename RowJson>
std::string document_of(const char* schema, const std::vector<Row>& rows,
                        const std::string& command, const RowJson& to_json) {
  Ordered document;
  document["schema"] = schema;
  document["version"] = version();
  document["command"] = command;
  Ordered& list = document["rows"] = Ordered::array();
  for (const Row& row : rows) list.push_back(to_json(row));
  return document.dump(2, ' ', false, Ordered::error_handler_t::replace) + "\n";
}

}  // namespace

std::string size_json(const std::vector<SizeRow>& rows, const std::string& command) {
  return document_of("servesim/size/v1", rows, command, row_json);
}

std::string training_json(const std::vector<TrainingRow>& rows, const std::string& command) {
  return document_of("servesim/size-training/v1", rows, command, training_row_json);
}

}  // namespace servesim
