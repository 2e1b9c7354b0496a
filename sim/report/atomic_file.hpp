/// Output files that appear whole or not at all.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace servesim {

/// A file written under a temporary name beside `path` and renamed by commit(). Destroyed without
/// commit(), it leaves nothing behind. Opening it is the check that the path can be written, so
/// make it before a run starts. A path that is no regular file (/dev/null, a pipe) is written
/// directly.
class AtomicFile {
 public:
  /// Throws InputError when `path` cannot be written.
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Throws InputError when the disk is full, or whatever else keeps the bytes from being written.
  void write(std::string_view bytes);
  /// Flushes and closes: after this, only the rename is left to fail. Throws InputError when the
  /// disk is full.
  void close();
  /// Closes and renames. Throws InputError when that fails.
  void commit();

  const std::string& path() const { return path_; }

 private:
  [[noreturn]] void fail(int error) const;
  void open_temporary(const std::string& target);

  std::string path_;
  std::string temporary_;  // empty: written directly
  std::FILE* file_ = nullptr;
  std::vector<char> buffer_;
};

}  // namespace servesim
