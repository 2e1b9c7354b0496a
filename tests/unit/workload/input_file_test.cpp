#include "workload/input_file.hpp"

#include <fcntl.h>
#include <lzma.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <thread>

#include "support/catch.hpp"
#include "unit/workload/trace_support.hpp"

namespace servesim::test {
namespace {

std::string many_rows() {
  std::string text = "arrived_at,num_prefill_tokens,num_decode_tokens\n";
  for (int i = 0; i < 50'000; ++i) {
    text += std::to_string(i) + "." + std::to_string(i * 7919 % 1000) + "," +
            std::to_string(i * 31 % 977 + 1) + ",7\n";
  }
  return text;
}

std::string gzip(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::string zstd(const std::string& text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
  return packed;
}

std::string xz(const std::string& text) {
  std::string packed(lzma_stream_buffer_bound(text.size()), '\0');
  std::size_t size = 0;
  lzma_easy_buffer_encode(6, LZMA_CHECK_CRC64, nullptr,
                          reinterpret_cast<const std::uint8_t*>(text.data()), text.size(),
                          reinterpret_cast<std::uint8_t*>(packed.data()), &size, packed.size());
  packed.resize(size);
  return packed;
}

std::int64_t total_input(std::string_view content) {
  const TempFile file(content);
  return TraceSource(file.path()).summary().input_tokens;
}

TEST_CASE("compressed traces read like plain ones, whatever their name") {
  const std::string text = many_rows();
  const std::int64_t expected = total_input(text);
  REQUIRE(expected > 50'000);
  CHECK(total_input(gzip(text)) == expected);
  CHECK(total_input(zstd(text)) == expected);
  CHECK(total_input(xz(text)) == expected);
}

TEST_CASE("several members or frames in a row are one trace") {
  const std::string text = many_rows();
  const std::string head = text.substr(0, 400'001);
  const std::string tail = text.substr(400'001);
  const std::int64_t expected = total_input(text);
  CHECK(total_input(gzip(head) + gzip(tail)) == expected);
  CHECK(total_input(gzip(head) + gzip(tail) + std::string(100, '\0')) == expected);
  CHECK(total_input(zstd(head) + zstd(tail)) == expected);
  CHECK(total_input(xz(head) + xz(tail)) == expected);
}

TEST_CASE("truncated or corrupt compressed traces are refused by file") {
  for (const auto& packed : {gzip(many_rows()), zstd(many_rows()), xz(many_rows())}) {
    const std::string half = packed.substr(0, packed.size() / 2);
    CHECK(contains(refusal(half), "trace: the "));
    CHECK(contains(refusal(half), "ends too early: the file is truncated"));
    CHECK(contains(refusal(packed.substr(0, packed.size() - 3)), "truncated"));
    std::string broken = packed;
    for (std::size_t i = 0; i < 200; ++i) broken[broken.size() / 2 + i] ^= 0x5a;
    CHECK(refusal(broken) != "no error");
    CHECK(contains(refusal(packed.substr(0, 8)), "trace: the "));
  }
  CHECK(contains(refusal(gzip(many_rows()) + "garbage"), "trailing garbage"));
}

TEST_CASE("files that cannot be read are one clear line") {
  CHECK(contains(error_of([] { TraceSource("/nonexistent/trace.jsonl"); }),
                 "/nonexistent/trace.jsonl: cannot be read: No such file"));
  CHECK(contains(error_of([] { TraceSource("/tmp"); }), "/tmp: is a directory"));
  CHECK(contains(refusal(""), "trace: is empty"));
  CHECK(refusal(gzip("")) != "no error");
}

TEST_CASE("a pipe is spooled once and can be replayed") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const std::string text = many_rows();
  std::thread writer([&] {
    std::size_t sent = 0;
    while (sent < text.size()) {
      const ssize_t n = ::write(ends[1], text.data() + sent, text.size() - sent);
      if (n <= 0) break;
      sent += static_cast<std::size_t>(n);
    }
    ::close(ends[1]);
  });
  const auto file = InputFile::spool(ends[0], "<stdin>");
  writer.join();
  ::close(ends[0]);
  TraceOptions options;
  options.cache_bytes = 0;  // from the file every time
  const TraceSource source(file, options);
  CHECK(source.name() == "<stdin>");
  CHECK(read_all(*source.open()).size() == 50'000);
  CHECK(read_all(*source.open()).size() == 50'000);
}

TEST_CASE("a line of more than 64 MiB is refused, plain or compressed") {
  const std::string good = R"({"timestamp": 1, "input_length": 1, "output_length": 1})"
                           "\n";
  const std::string giant = good + R"({"timestamp": 1, "x": ")" + std::string(65 << 20, 'a');
  CHECK(contains(refusal(giant), "trace:2: the line is longer than 64 MiB"));
  CHECK(contains(refusal(zstd(giant)), "trace:2: the line is longer than 64 MiB"));
}

TEST_CASE("junk fails at its first line") {
  std::string junk;
  for (int i = 0; i < 200'000; ++i) junk += "junk line\n";
  CHECK(contains(refusal(junk), "is not a trace"));
  CHECK(contains(refusal(junk, format("mooncake")), "trace:1: is not valid JSON"));
}

TEST_CASE("a file that ends at a page boundary is read to its end") {
  const std::string head = "arrived_at,num_prefill_tokens,num_decode_tokens\n";
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::string text = head + "#";
  const std::string last = "\n1,2,3";
  text += std::string(page - text.size() - last.size(), 'x') + last;
  REQUIRE(text.size() == page);
  CHECK(requests_of(text).at(0).output_tokens == 3);
  std::string json = "#";
  const std::string row =
      "\n"
      R"({"timestamp": 1, "input_length": 1, "output_length": 9})";
  json += std::string(page - 1 - row.size(), 'x') + row;
  CHECK(requests_of(json).at(0).output_tokens == 9);
}

}  // namespace
}  // namespace servesim::test
