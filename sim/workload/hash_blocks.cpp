#include "workload/hash_blocks.hpp"

#include <fmt/format.h>

#include <array>
#include <string>

namespace servesim {
namespace {

bool fits(std::int64_t ids, std::int64_t tokens, std::int64_t block) {
  return ids == tokens / block || ids == (tokens + block - 1) / block;
}

/// Advice on options under which the number of ids would be right; empty when there is none.
std::string advice(std::int64_t ids, std::int64_t tokens) {
  if (ids == 0) return "; leave the field out where there is no prefix identity";
  constexpr std::array<std::int64_t, 9> kUsualBlocks{16, 512, 64, 32, 128, 256, 1024, 2048, 8};
  for (const std::int64_t block : kUsualBlocks) {
    if (!fits(ids, tokens, block)) continue;
    const std::string_view unit =
        block == 16 ? " (such traces, Bailian's and `vllm bench` timed_trace's, mostly have times "
                      "in seconds: --time-unit s)"
                    : "";
    return fmt::format("; --hash-block-size {} would fit{}", block, unit);
  }
  const std::int64_t block = (tokens + ids - 1) / ids;
  return block > 0 && fits(ids, tokens, block)
             ? fmt::format("; --hash-block-size {} would fit", block)
             : "; no block size fits";
}

}  // namespace

void check_hash_ids(const Request& request, const Location& where) {
  const auto ids = static_cast<std::int64_t>(request.hash_ids.size());
  const std::int64_t tokens = request.input_tokens;
  const std::int64_t block = request.hash_block;
  if (fits(ids, tokens, block)) return;
  throw where.error(fmt::format(
      "field 'hash_ids': {} ids are not accepted; {} tokens in blocks of {} have {} (or {}, the "
      "last block being partial){}",
      ids, tokens, block, tokens / block, (tokens + block - 1) / block, advice(ids, tokens)));
}

std::uint64_t global_hash_id(std::uint64_t scope, std::uint64_t id) {
  std::uint64_t mixed = id + (scope + 1) * 0x9e3779b97f4a7c15ULL;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebULL;
  return mixed ^ (mixed >> 31);
}

}  // namespace servesim
