#include "report/gzip.hpp"

#include <zlib.h>

#include <stdexcept>
#include <vector>

namespace servesim {

struct TextSink::Deflater {
  z_stream stream{};
  std::vector<char> output = std::vector<char>(1 << 16);

  Deflater() {
    constexpr int kGzip = 15 + 16;
    constexpr int kMemoryLevel = 8;
    if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzip, kMemoryLevel,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
      throw std::runtime_error("zlib cannot be set up");
    }
  }
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;
  ~Deflater() { deflateEnd(&stream); }
};

TextSink::TextSink(AtomicFile& file, bool gzip)
    : file_(file), deflater_(gzip ? std::make_unique<Deflater>() : nullptr) {}

TextSink::~TextSink() = default;

void TextSink::write(std::string_view text) {
  if (deflater_) {
    deflate_all(text, false);
  } else {
    file_.write(text);
  }
}

void TextSink::finish() {
  if (deflater_) deflate_all({}, true);
}

void TextSink::deflate_all(std::string_view text, bool last) {
  z_stream& stream = deflater_->stream;
  std::vector<char>& output = deflater_->output;
  // zlib does not write through next_in; its type merely predates const.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  do {
    stream.next_out = reinterpret_cast<Bytef*>(output.data());
    stream.avail_out = static_cast<uInt>(output.size());
    deflate(&stream, last ? Z_FINISH : Z_NO_FLUSH);
    file_.write({output.data(), output.size() - stream.avail_out});
  } while (stream.avail_out == 0);
}

}  // namespace servesim
