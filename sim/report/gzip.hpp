/// Text that goes to a file as it is or gzipped.
#pragma once

#include <memory>
#include <string_view>

#include "report/atomic_file.hpp"

namespace servesim {

/// Writes to `file`. The same text gives the same bytes: no name and no time go into the header.
class TextSink {
 public:
  TextSink(AtomicFile& file, bool gzip);
  ~TextSink();
  TextSink(const TextSink&) = delete;
  TextSink& operator=(const TextSink&) = delete;

  /// Throws InputError as AtomicFile does.
  void write(std::string_view text);
  /// Writes what is left. REQUIRES: no write() after it.
  void finish();

 private:
  struct Deflater;
  void deflate_all(std::string_view text, bool last);

  AtomicFile& file_;
  std::unique_ptr<Deflater> deflater_;  ///< null: as it is
};

}  // namespace servesim
