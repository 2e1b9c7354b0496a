// The list of kernels: what LLM layers run, on the sizes they run them.
#include <algorithm>
#include <array>
#include <utility>

#include "planner.hpp"

namespace servesim::calibrate {
namespace {

using Shape = std::pair<std::int64_t, std::int64_t>;  // n, k of a weight

/// QKV, output, gate-up and down projections of Llama 3 8B and 70B, Qwen3 14B, 70B over 4 and 8
/// GPUs, and two LM heads.
constexpr std::array kGpuShapes{
    Shape{6144, 4096},  Shape{4096, 4096}, Shape{28672, 4096},  Shape{4096, 14336},
    Shape{10240, 8192}, Shape{8192, 8192}, Shape{57344, 8192},  Shape{8192, 28672},
    Shape{7168, 5120},  Shape{5120, 5120}, Shape{34816, 5120},  Shape{5120, 17408},
    Shape{2560, 8192},  Shape{8192, 2048}, Shape{14336, 8192},  Shape{8192, 7168},
    Shape{1280, 8192},  Shape{7168, 8192}, Shape{128256, 4096}, Shape{151936, 5120}};
/// The same of Qwen3 0.6B and 1.7B and of Llama 3.2 1B.
constexpr std::array kCpuShapes{Shape{4096, 1024},  Shape{1024, 2048}, Shape{6144, 1024},
                                Shape{1024, 3072},  Shape{4096, 2048}, Shape{2048, 2048},
                                Shape{12288, 2048}, Shape{2048, 6144}, Shape{3072, 2048},
                                Shape{16384, 2048}, Shape{2048, 8192}};
/// Shapes of other widths for GEMVs, which are quick: Qwen2.5 0.5B and 1.5B.
constexpr std::array kMoreCpuGemvs{Shape{1152, 896},   Shape{896, 896},   Shape{9728, 896},
                                   Shape{896, 4864},   Shape{2048, 1536}, Shape{1536, 1536},
                                   Shape{17920, 1536}, Shape{1536, 8960}};
constexpr std::array<std::int64_t, 17> kGpuRows{1,   2,   4,   8,    16,   32,   64,   96,   128,
                                                192, 256, 512, 1024, 2048, 4096, 8192, 16384};
constexpr std::array<std::int64_t, 8> kCpuRows{1, 2, 4, 8, 16, 64, 128, 256};

class Suite {
 public:
  explicit Suite(const SuiteLimits& limits) : limits_(limits) {}

  std::vector<Case> all() {
    bandwidth();
    launches();
    gemv();
    gemm();
    sustained();
    decode();
    prefill();
    elementwise();
    sampling();
    copies();
    all_reduces();
    return std::move(all_);
  }

 private:
  /// Appends a family from coarse to fine, without what does not fit into memory.
  void add(const std::vector<Case>& family) {
    for (const std::size_t i : coarse_to_fine(family.size())) all_.push_back(family[i]);
  }

  void bandwidth() {
    std::vector<Case> family;
    const double most = std::min(limits_.arena_bytes, limits_.gpu ? 2e9 : 400e6);
    for (const Kernel kernel : {Kernel::kRead, Kernel::kTriad, Kernel::kCopy, Kernel::kWrite}) {
      for (std::int64_t bytes = 384 << 10; static_cast<double>(bytes) <= most; bytes *= 4) {
        Case c;
        c.kernel = kernel;
        c.bytes = bytes;
        family.push_back(c);
      }
    }
    std::reverse(family.begin(), family.end());
    if (!limits_.gpu) {
      Case peak;
      peak.kernel = Kernel::kPeakFma;
      peak.n = 64 << 20;
      peak.dtype = DType::kFp32;
      all_.push_back(peak);
    }
    add(family);
  }

  void launches() {
    Case c;
    c.kernel = Kernel::kLaunch;
    all_.push_back(c);
    if (!limits_.gpu) return;
    c.kernel = Kernel::kGraph;
    all_.push_back(c);
  }

  std::vector<Shape> shapes() const {
    return limits_.gpu ? std::vector<Shape>(kGpuShapes.begin(), kGpuShapes.end())
                       : std::vector<Shape>(kCpuShapes.begin(), kCpuShapes.end());
  }

  void gemv() {
    std::vector<Case> family;
    std::vector<Shape> all = shapes();
    if (!limits_.gpu) all.insert(all.end(), kMoreCpuGemvs.begin(), kMoreCpuGemvs.end());
    // Types outside: from coarse to fine all types then get the same number of shapes.
    for (const DType type : {DType::kBf16, DType::kFp16, DType::kInt8, DType::kInt4}) {
      for (const auto& [n, k] : all) {
        Case c;
        c.kernel = Kernel::kGemv;
        c.dtype = type;
        c.m = 1;
        c.n = n;
        c.k = k;
        family.push_back(c);
      }
    }
    add(family);
  }

  void gemm() {
    std::vector<Case> family;
    std::vector<DType> types{DType::kBf16};
    if (limits_.gpu && limits_.fp8) types.push_back(DType::kFp8);
    if (limits_.gpu && limits_.int8) types.push_back(DType::kInt8);
    const auto rows = limits_.gpu ? std::vector<std::int64_t>(kGpuRows.begin(), kGpuRows.end())
                                  : std::vector<std::int64_t>(kCpuRows.begin(), kCpuRows.end());
    for (const DType type : types) {
      for (const auto& [n, k] : shapes()) {
        for (const std::int64_t m : rows) {
          Case c;
          c.kernel = Kernel::kGemm;
          c.dtype = type;
          c.m = m;
          c.n = n;
          c.k = k;
          family.push_back(c);
        }
      }
    }
    add(family);
  }

  void sustained() {
    Case c;
    c.kernel = Kernel::kSustainedGemm;
    c.m = limits_.gpu ? 8192 : 256;
    c.n = limits_.gpu ? 8192 : 2048;
    c.k = c.n;
    all_.push_back(c);
  }

  void decode() {
    std::vector<Case> family, other_blocks;
    // Query and KV heads of Llama 3 8B, its MHA ancestor, and a rank of 70B over 8 GPUs.
    const auto heads = limits_.gpu ? std::vector<Shape>{{32, 8}, {32, 32}, {8, 1}}
                                   : std::vector<Shape>{{16, 8}, {32, 8}};
    const auto batches = limits_.gpu ? std::vector<std::int64_t>{1, 4, 16, 64, 256}
                                     : std::vector<std::int64_t>{1, 4, 16};
    const auto contexts = limits_.gpu ? std::vector<std::int64_t>{128, 512, 2048, 8192, 32768}
                                      : std::vector<std::int64_t>{128, 512, 2048};
    for (const auto& [q_heads, kv_heads] : heads) {
      for (const std::int64_t batch : batches) {
        for (const std::int64_t context : contexts) {
          for (const std::int64_t block_size : {16, 8, 32}) {
            if (block_size != 16 && batch != batches[batches.size() / 2]) continue;
            Case c;
            c.kernel = Kernel::kDecodeAttention;
            c.batch = batch;
            c.context = context;
            c.heads = q_heads;
            c.kv_heads = kv_heads;
            c.head_dim = 128;
            c.block_size = block_size;
            (block_size == 16 ? family : other_blocks).push_back(c);
          }
        }
      }
    }
    add(family);  // what the fit takes goes first
    add(other_blocks);
  }

  void prefill() {
    std::vector<Case> family;
    const auto heads = limits_.gpu ? std::vector<Shape>{{32, 8}, {32, 32}, {8, 1}}
                                   : std::vector<Shape>{{16, 8}, {32, 8}};
    const auto lengths =
        limits_.gpu ? std::vector<std::int64_t>{64, 256, 512, 1024, 2048, 4096, 8192, 16384}
                    : std::vector<std::int64_t>{32, 64, 128, 192, 256};
    for (const auto& [q_heads, kv_heads] : heads) {
      for (const std::int64_t batch : {1, 4}) {
        for (const std::int64_t tokens : lengths) {
          Case c;
          c.kernel = Kernel::kPrefillAttention;
          c.batch = batch;
          c.context = tokens;
          c.heads = q_heads;
          c.kv_heads = kv_heads;
          c.head_dim = 128;
          family.push_back(c);
        }
      }
    }
    add(family);
  }

  void elementwise() {
    std::vector<Case> family;
    const auto widths = limits_.gpu ? std::vector<Shape>{{4096, 14336}, {8192, 28672}}
                                    : std::vector<Shape>{{1024, 3072}, {2048, 6144}};
    const auto rows = limits_.gpu ? std::vector<std::int64_t>{1, 16, 128, 1024, 4096}
                                  : std::vector<std::int64_t>{1, 32, 256, 1024};
    for (const Kernel kernel : {Kernel::kRmsNorm, Kernel::kRope, Kernel::kSiluMul}) {
      for (const auto& [hidden, intermediate] : widths) {
        for (const std::int64_t m : rows) {
          Case c;
          c.kernel = kernel;
          c.m = m;
          c.n = kernel == Kernel::kSiluMul ? intermediate : hidden;
          c.heads = hidden / 128;
          c.kv_heads = 8;
          c.head_dim = 128;
          family.push_back(c);
        }
      }
    }
    add(family);
  }

  void sampling() {
    std::vector<Case> family;
    const auto rows = limits_.gpu ? std::vector<std::int64_t>{1, 8, 32, 128, 256}
                                  : std::vector<std::int64_t>{1, 4, 16};
    for (const Kernel kernel : {Kernel::kSoftmax, Kernel::kTopKTopP}) {
      for (const std::int64_t vocab : {32000, 128256, 151936}) {
        for (const std::int64_t m : rows) {
          Case c;
          c.kernel = kernel;
          c.dtype = DType::kFp32;
          c.m = m;
          c.n = vocab;
          family.push_back(c);
        }
      }
    }
    add(family);
  }

  void copies() {
    if (!limits_.gpu) return;
    std::vector<Case> family;
    for (std::int64_t bytes = 64 << 10; bytes <= 256 << 20; bytes *= 4) {
      for (const Kernel kernel :
           {Kernel::kHostToDevice, Kernel::kDeviceToHost, Kernel::kPeerCopy}) {
        if (kernel == Kernel::kPeerCopy && limits_.devices < 2) continue;
        Case c;
        c.kernel = kernel;
        c.bytes = bytes;
        family.push_back(c);
      }
    }
    add(family);
  }

  void all_reduces() {
    if (!limits_.nccl) return;
    std::vector<Case> family;
    for (std::int64_t gpus = 2; gpus <= limits_.devices; gpus *= 2) {
      for (std::int64_t bytes = 1 << 10; bytes <= 256 << 20; bytes *= 2) {
        Case c;
        c.kernel = Kernel::kAllReduce;
        c.gpus = gpus;
        c.bytes = bytes;
        family.push_back(c);
      }
    }
    add(family);
  }

  SuiteLimits limits_;
  std::vector<Case> all_;
};

}  // namespace

std::vector<std::size_t> coarse_to_fine(std::size_t n) {
  std::vector<std::size_t> order;
  std::size_t power = 1;
  while (power < n) power *= 2;
  for (std::size_t i = 0; i < power; ++i) {
    std::size_t reversed = 0;
    for (std::size_t bit = 1; bit < power; bit *= 2) {
      reversed = reversed * 2 + ((i & bit) != 0 ? 1 : 0);
    }
    if (reversed < n) order.push_back(reversed);
  }
  return order;
}

std::vector<Case> suite(const SuiteLimits& limits) {
  return Suite(limits).all();
}

}  // namespace servesim::calibrate
