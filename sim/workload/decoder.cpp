#include "workload/decoder.hpp"

#include <fmt/format.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/error.hpp"

namespace servesim {
namespace {

/// What the three formats share: the input and the two ways in which it can be bad.
class FileDecoder : public Decoder {
 protected:
  FileDecoder(std::shared_ptr<const InputFile> file, std::string_view kind)
      : file_(std::move(file)), kind_(kind) {}

  std::string_view bytes() const { return file_->bytes(); }
  InputError truncated() const {
    return InputError(
        fmt::format("{}: the {} data ends too early: the file is truncated", file_->name(), kind_));
  }
  InputError corrupt(std::string_view why) const {
    return InputError(fmt::format("{}: the {} data is corrupt: {}", file_->name(), kind_, why));
  }

 private:
  std::shared_ptr<const InputFile> file_;
  std::string_view kind_;
};

class GzipDecoder final : public FileDecoder {
 public:
  explicit GzipDecoder(std::shared_ptr<const InputFile> file)
      : FileDecoder(std::move(file), "gzip") {
    constexpr int kGzipOnly = 16 + MAX_WBITS;
    if (inflateInit2(&stream_, kGzipOnly) != Z_OK) throw corrupt("zlib cannot start");
    stream_.avail_in = 0;
  }
  ~GzipDecoder() override { inflateEnd(&stream_); }
  GzipDecoder(const GzipDecoder&) = delete;
  GzipDecoder& operator=(const GzipDecoder&) = delete;

  std::size_t read(char* target, std::size_t capacity) override {
    capacity = std::min(capacity, kLargestCall);
    stream_.next_out = reinterpret_cast<Bytef*>(target);
    stream_.avail_out = static_cast<uInt>(capacity);
    while (stream_.avail_out == capacity && !done_) step();
    return capacity - stream_.avail_out;
  }

 private:
  static constexpr std::size_t kLargestCall = std::size_t{1} << 30;

  void step() {
    if (stream_.avail_in == 0) {
      const std::string_view left = bytes().substr(consumed_);
      if (left.empty()) throw truncated();
      // zlib never writes to its input, whatever its types say.
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(left.data()));
      stream_.avail_in = static_cast<uInt>(std::min(left.size(), kLargestCall));
      consumed_ += stream_.avail_in;
    }
    const int result = inflate(&stream_, Z_NO_FLUSH);
    if (result == Z_STREAM_END) return end_member();
    if (result != Z_OK && result != Z_BUF_ERROR) {
      throw corrupt(stream_.msg != nullptr ? stream_.msg : "invalid stream");
    }
  }

  /// A gzip file may hold several members one after another, and zeros as padding at its end.
  void end_member() {
    const std::string_view left = bytes().substr(consumed_ - stream_.avail_in);
    if (left.find_first_not_of('\0') == std::string_view::npos) {
      done_ = true;
    } else if (!left.starts_with("\x1f\x8b")) {
      throw corrupt("trailing garbage");
    } else {
      inflateReset(&stream_);
    }
  }

  z_stream stream_{};
  std::size_t consumed_ = 0;
  bool done_ = false;
};

class ZstdDecoder final : public FileDecoder {
 public:
  explicit ZstdDecoder(std::shared_ptr<const InputFile> file)
      : FileDecoder(std::move(file), "zstd"), context_(ZSTD_createDCtx()) {
    input_ = {bytes().data(), bytes().size(), 0};
  }
  ~ZstdDecoder() override { ZSTD_freeDCtx(context_); }
  ZstdDecoder(const ZstdDecoder&) = delete;
  ZstdDecoder& operator=(const ZstdDecoder&) = delete;

  std::size_t read(char* target, std::size_t capacity) override {
    ZSTD_outBuffer output{target, capacity, 0};
    while (output.pos == 0) {
      if (input_.pos == input_.size && frame_done_) return 0;
      const std::size_t before = input_.pos;
      const std::size_t result = ZSTD_decompressStream(context_, &output, &input_);
      if (ZSTD_isError(result) != 0) throw corrupt(ZSTD_getErrorName(result));
      frame_done_ = result == 0;
      const bool stuck = input_.pos == before && output.pos == 0;
      if (stuck && !frame_done_) throw truncated();
    }
    return output.pos;
  }

 private:
  ZSTD_DCtx* context_;
  ZSTD_inBuffer input_{};
  bool frame_done_ = false;
};

class XzDecoder final : public FileDecoder {
 public:
  explicit XzDecoder(std::shared_ptr<const InputFile> file) : FileDecoder(std::move(file), "xz") {
    constexpr std::uint64_t kMostMemoryBytes = std::uint64_t{512} << 20;
    if (lzma_stream_decoder(&stream_, kMostMemoryBytes, LZMA_CONCATENATED) != LZMA_OK) {
      throw corrupt("liblzma cannot start");
    }
    stream_.next_in = reinterpret_cast<const std::uint8_t*>(bytes().data());
    stream_.avail_in = bytes().size();
  }
  ~XzDecoder() override { lzma_end(&stream_); }
  XzDecoder(const XzDecoder&) = delete;
  XzDecoder& operator=(const XzDecoder&) = delete;

  std::size_t read(char* target, std::size_t capacity) override {
    stream_.next_out = reinterpret_cast<std::uint8_t*>(target);
    stream_.avail_out = capacity;
    while (stream_.avail_out == capacity && !done_) {
      switch (lzma_code(&stream_, LZMA_FINISH)) {
        case LZMA_OK:
          break;
        case LZMA_STREAM_END:
          done_ = true;
          break;
        case LZMA_BUF_ERROR:
          throw truncated();
        case LZMA_MEMLIMIT_ERROR:
          throw corrupt("it needs more than 512 MiB of memory to unpack");
        default:
          throw corrupt("invalid stream");
      }
    }
    return capacity - stream_.avail_out;
  }

 private:
  lzma_stream stream_ = LZMA_STREAM_INIT;
  bool done_ = false;
};

}  // namespace

std::unique_ptr<Decoder> make_decoder(std::shared_ptr<const InputFile> file) {
  switch (file->compression()) {
    case Compression::kGzip:
      return std::make_unique<GzipDecoder>(std::move(file));
    case Compression::kZstd:
      return std::make_unique<ZstdDecoder>(std::move(file));
    case Compression::kXz:
      return std::make_unique<XzDecoder>(std::move(file));
    case Compression::kNone:
      break;
  }
  return nullptr;
}

}  // namespace servesim
