/// What training a transformer takes on one GPU: the memory of its states and activations, what
/// checkpointing and offloading save, and what they cost. docs/size.md has the formulas.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hardware/hardware_spec.hpp"
#include "model/model_spec.hpp"

namespace servesim {

/// The dimensions that training memory depends on.
struct TrainingShape {
  std::string name;
  double parameters = 0;
  double active_parameters = 0;  ///< that one token runs through
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t attention_channels = 0;  ///< heads x head_dim
  std::int64_t vocab = 0;               ///< 0: logits are left out
};

TrainingShape training_shape(const ModelSpec& model);
/// A plain transformer: 12 x layers x hidden^2 parameters (Kaplan et al., arXiv:2001.08361),
/// embeddings left out.
TrainingShape training_shape(std::int64_t hidden, std::int64_t layers, std::int64_t heads);

/// Values of `hidden` that a layer keeps per token for its backward pass: 16 for the block of
/// Korthikanti et al. (arXiv:2205.05198), whose 34 bytes less two dropout masks are 16 values of 2
/// bytes: 2 inputs of norms, input of QKV, Q, K, V, input of the projection, input of the MLP, 4 of
/// the GeLU and 4 of the second linear layer.
inline constexpr double kActivationFactor = 16;
/// The same counted from a model's dimensions: 2 inputs of norms, input of QKV, Q, K, V, input of
/// the projection, input of the MLP, and gate, up and their product (of the experts a token runs
/// through). Throws InputError for MLA.
double activation_factor_of(const ModelSpec& model);

/// `kSelective` recomputes attention's core alone; `kFull` keeps the inputs of segments and
/// recomputes one segment at a time (Chen et al., arXiv:1604.06174).
enum class Checkpointing : std::uint8_t { kNone, kSelective, kFull };
/// Where gradients and optimiser states live, and the update runs: HBM; CPU memory (ZeRO-Offload,
/// arXiv:2101.06840); NVMe, by way of CPU memory (ZeRO-Infinity, arXiv:2104.07857).
enum class OptimizerOffload : std::uint8_t { kNone, kCpu, kNvme };

/// "none" | "selective" | "full" and "none" | "cpu" | "nvme". Throw InputError for anything else.
Checkpointing parse_checkpointing(std::string_view text);
OptimizerOffload parse_optimizer_offload(std::string_view text);
std::string_view name_of(Checkpointing checkpointing);
std::string_view name_of(OptimizerOffload offload);

struct TrainingOptions {
  std::int64_t batch = 1;       ///< sequences
  std::int64_t context = 2048;  ///< tokens of each
  double activation_factor = kActivationFactor;
  bool flash_attention = true;  ///< scores and probabilities are never stored
  bool dropout = false;
  Checkpointing checkpointing = Checkpointing::kNone;
  std::int64_t segments = 0;  ///< of full checkpointing; 0: ceil(sqrt(layers))
  OptimizerOffload offload = OptimizerOffload::kNone;
  bool offload_activations = false;  ///< to CPU memory: all that waits for the backward pass
  /// Share of the 16-bit peak that training reaches; large runs publish 0.38 to 0.46 (Llama 3,
  /// arXiv:2407.21783; PaLM, arXiv:2204.02311).
  double mfu = 0.4;
  /// One PCIe Gen4 x4 data-centre drive: Samsung PM9A3 datasheet, sequential.
  double nvme_read_bytes_per_s = 6.9e9;
  double nvme_write_bytes_per_s = 4.1e9;
};

/// One stream of bytes that a step moves, and the computation it can run beside.
struct Transfer {
  std::string_view what;
  std::string_view link;    ///< "pcie" | "nvme"
  std::string_view behind;  ///< "forward" | "backward"
  double bytes = 0;
  double seconds = 0;
  double compute_s = 0;  ///< of `behind`

  bool hidden() const { return seconds <= compute_s; }
  double exposed_s() const { return hidden() ? 0 : seconds - compute_s; }
};

/// Bytes and seconds of one step on one GPU. Mixed precision with AdamW (Micikevicius et al.,
/// arXiv:1710.03740; 16 bytes a parameter as in ZeRO, arXiv:1910.02054).
struct TrainingSize {
  double weight_bytes = 0;      ///< 16-bit: 2 a parameter
  double gradient_bytes = 0;    ///< 16-bit: 2
  double optimizer_bytes = 0;   ///< 32-bit weights, momentum and variance: 12
  double layer_bytes = 0;       ///< activations of one layer, scores included
  double score_bytes = 0;       ///< of them, what FlashAttention does not store
  double activation_bytes = 0;  ///< of all layers, as checkpointed, at the peak
  std::int64_t segments = 0;    ///< of full checkpointing
  double logit_bytes = 0;       ///< 32-bit, for the loss
  double workspace_bytes = 0;
  double host_bytes = 0;       ///< moved to CPU memory or NVMe
  double hbm_bytes = 0;        ///< what stays
  double memory_bytes = 0;     ///< the GPU's
  double forward_flops = 0;    ///< 2 a parameter and token, and attention's core
  double recompute_flops = 0;  ///< what checkpointing repeats
  double forward_s = 0;
  double backward_s = 0;  ///< recomputation included
  std::vector<Transfer> transfers;
  double step_s = 0;  ///< forward, backward and what of the transfers is exposed

  bool fits() const { return hbm_bytes <= memory_bytes; }
  /// FLOPs against those without checkpointing.
  double compute_factor() const { return 1 + recompute_flops / (3 * forward_flops); }
};

/// Throws InputError for sizes out of range.
TrainingSize size_training(const TrainingShape& shape, const HardwareSpec& hardware,
                           const TrainingOptions& options);

}  // namespace servesim
