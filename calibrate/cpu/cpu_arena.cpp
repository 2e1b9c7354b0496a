#include "cpu/cpu_arena.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "core/error.hpp"
#include "text.hpp"

namespace servesim::calibrate {
namespace {

constexpr std::int64_t kPage = 4096;
constexpr int kStale = 0xff;  ///< not a number in every float type

template <class T>
void fill(void* memory, DType type, std::uint64_t seed, std::int64_t begin, std::int64_t end) {
  T* elements = static_cast<T*>(memory);
  for (std::int64_t i = begin; i < end; ++i) {
    elements[i] = static_cast<T>(pattern(type, seed, static_cast<std::uint64_t>(i)));
  }
}

}  // namespace

void CpuArena::Free::operator()(void* p) const {
  std::free(p);
}

CpuArena::Memory CpuArena::allocate() const {
  void* memory = nullptr;
  constexpr std::size_t kHugePage = 2 << 20;
  if (posix_memalign(&memory, kHugePage, static_cast<std::size_t>(bytes_)) != 0) {
    throw InputError(print_to_string("not enough memory: %lld MiB for operands cannot be had",
                                     static_cast<long long>(bytes_ >> 20)));
  }
  // Large pages where the system has them: fewer faults now, fewer TLB misses in the timings.
  madvise(memory, static_cast<std::size_t>(bytes_), MADV_HUGEPAGE);
  return Memory(memory);
}

const void* CpuArena::of(DType type) {
  Memory& region = regions_[type];
  if (region) return region.get();
  region = allocate();
  const auto element = static_cast<std::int64_t>(std::max<std::uint64_t>(bytes_of(type, 1), 1));
  const std::int64_t count = bytes_ / element;
  const std::int64_t period = std::min(count, static_cast<std::int64_t>(kPatternPeriod));
  pool_.run(period, kPage, [&](std::int64_t begin, std::int64_t end) {
    if (element == 4) return fill<std::uint32_t>(region.get(), type, seed_, begin, end);
    if (element == 2) return fill<std::uint16_t>(region.get(), type, seed_, begin, end);
    fill<std::uint8_t>(region.get(), type, seed_, begin, end);
  });
  auto* first = static_cast<char*>(region.get());
  for (std::int64_t at = period; at < count; at += period) {
    std::memcpy(first + at * element, first,
                static_cast<std::size_t>(element * std::min(period, count - at)));
  }
  return region.get();
}

void* CpuArena::output() {
  if (!output_) {
    output_ = allocate();
    std::memset(output_.get(), kStale, static_cast<std::size_t>(bytes_));  // maps its pages
  }
  return output_.get();
}

void CpuArena::forget_results() {
  constexpr std::int64_t kFirst = 1 << 20;  // every check looks there; all of it would take long
  std::memset(output(), kStale, static_cast<std::size_t>(std::min(kFirst, bytes_)));
}

}  // namespace servesim::calibrate
