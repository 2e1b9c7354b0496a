/// The bytes of a trace: a file or stdin, mapped once and readable any number of times.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace servesim {

/// How the bytes of a file are packed, told by their first bytes and not by the name.
enum class Compression { kNone, kGzip, kZstd, kXz };

/// A read-only mapping of a file. Pipes and stdin (`-`) are first spooled to an unlinked temporary
/// file, so they can be read again.
class InputFile {
 public:
  /// Bytes that may be read past the end of `bytes()`.
  static constexpr std::size_t kPadding = 64;

  /// Throws InputError naming `path`: missing, unreadable, a directory, empty.
  static std::shared_ptr<const InputFile> open(const std::string& path);
  /// The same from an open descriptor, which is spooled; `name` is for messages.
  static std::shared_ptr<const InputFile> spool(int descriptor, std::string name);

  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  /// What messages call the file: its path, or `<stdin>`.
  const std::string& name() const { return name_; }
  std::string_view bytes() const { return {data_, size_}; }
  Compression compression() const { return compression_; }

 private:
  InputFile(int descriptor, std::string name);

  std::string name_;
  const char* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t mapped_ = 0;
  Compression compression_ = Compression::kNone;
};

}  // namespace servesim
