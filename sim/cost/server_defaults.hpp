/// vLLM's defaults that depend on the GPU.
#pragma once

#include <cstdint>

namespace servesim {

/// What vLLM's API server uses when the flags are not given.
struct ServerDefaults {
  std::int64_t max_num_batched_tokens;
  std::int64_t max_num_seqs;
};

/// By memory: at least 160 GiB 16384 tokens and 1024 sequences; at least 70 GiB and not an A100
/// 8192 and 1024; else 2048 and 256. (vLLM, `EngineArgs._set_default_args`, usage context API
/// server.)
ServerDefaults server_defaults(double memory_bytes, bool is_a100);

}  // namespace servesim
