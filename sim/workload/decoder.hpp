/// Streaming decompression.
#pragma once

#include <cstddef>
#include <memory>

#include "workload/input_file.hpp"

namespace servesim {

/// Yields the decompressed bytes of a file in pieces, in bounded memory.
class Decoder {
 public:
  virtual ~Decoder() = default;
  /// Writes up to `capacity` bytes to `target` and returns how many; 0 at the end of the data.
  /// Throws InputError naming the file when the data is corrupt or ends too early.
  virtual std::size_t read(char* target, std::size_t capacity) = 0;
};

/// A decoder at the start of `file`; null when the file is not compressed.
std::unique_ptr<Decoder> make_decoder(std::shared_ptr<const InputFile> file);

}  // namespace servesim
