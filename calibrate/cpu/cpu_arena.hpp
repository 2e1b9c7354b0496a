/// Memory of random patterns, one region a type, that experiments take their operands from.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "cpu/thread_pool.hpp"
#include "operands.hpp"

namespace servesim::calibrate {

/// All memory that the CPU backend's kernels read and write.
class CpuArena {
 public:
  CpuArena(ThreadPool& pool, std::int64_t bytes, std::uint64_t seed)
      : pool_(pool), bytes_(bytes), seed_(seed) {}

  std::int64_t bytes() const { return bytes_; }
  std::uint64_t seed() const { return seed_; }

  /// The region of a type, filled by all threads when it is first asked for: REQUIRES: not called
  /// from within a parallel part.
  const void* of(DType type);
  template <class T>
  const T* at(const Operand& operand) {
    return reinterpret_cast<const T*>(static_cast<const char*>(of(operand.type)) + operand.offset);
  }
  /// Room for results, as large as an operand region.
  void* output();
  /// Overwrites what earlier kernels left in `output`, so that a check does not take it for new.
  void forget_results();

  /// See operand_slot().
  Operand slot(DType type, std::int64_t size, std::int64_t rotation, std::int64_t from = 0) const {
    return operand_slot({type, seed_, 0}, bytes_, size, rotation, from);
  }

 private:
  struct Free {
    void operator()(void* p) const;
  };
  using Memory = std::unique_ptr<void, Free>;
  Memory allocate() const;

  ThreadPool& pool_;
  std::int64_t bytes_;
  std::uint64_t seed_;
  std::map<DType, Memory> regions_;
  Memory output_;
};

}  // namespace servesim::calibrate
