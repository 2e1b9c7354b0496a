#include "workload/line_reader.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace servesim {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 18;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

}  // namespace

TextWindow::TextWindow(std::shared_ptr<const InputFile> file)
    : file_(std::move(file)), decoder_(make_decoder(file_)) {
  if (decoder_ == nullptr) {
    begin_ = file_->bytes().data();
    end_ = begin_ + file_->bytes().size();
  } else {
    while (unread().size() < kByteOrderMark.size() && extend()) {
    }
  }
  if (unread().starts_with(kByteOrderMark)) consume(kByteOrderMark.size());
}

bool TextWindow::extend() {
  if (decoder_ == nullptr) return false;
  const std::size_t kept = unread().size();
  const std::size_t wanted = std::max(kBufferBytes, kept * 2) + InputFile::kPadding;
  if (buffer_.size() < wanted) {
    std::vector<char> larger(wanted);
    std::copy(begin_, end_, larger.begin());
    buffer_.swap(larger);
  } else if (kept > 0) {
    std::memmove(buffer_.data(), begin_, kept);
  }
  const std::size_t room = buffer_.size() - InputFile::kPadding - kept;
  const std::size_t got = decoder_->read(buffer_.data() + kept, room);
  begin_ = buffer_.data();
  end_ = begin_ + kept + got;
  return got > 0;
}

bool LineReader::long_or_last_line(std::string_view& line) {
  std::size_t scanned = window_.unread().size();
  while (scanned < kLongestLineBytes && window_.extend()) {
    const std::string_view unread = window_.unread();
    if (std::memchr(unread.data() + scanned, '\n', unread.size() - scanned) != nullptr) {
      return raw_line(line);
    }
    scanned = unread.size();
  }
  ++line_;
  if (scanned >= kLongestLineBytes) {
    throw input_error_at(window_.file_name(), line_,
                         "the line is longer than 64 MiB, the most that is accepted");
  }
  line = window_.unread();
  window_.consume(line.size());
  return !line.empty();
}

}  // namespace servesim
