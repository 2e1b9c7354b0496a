#include "workload/sorted_runs.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <queue>

#include "core/error.hpp"

namespace servesim {
namespace {

/// A request on disk: this, then the id, the session and the hash ids.
struct Record {
  std::int64_t key;
  std::uint64_t index;
  std::int64_t arrival_ns, delay_ns;
  std::int64_t input_tokens, output_tokens;
  std::int64_t hash_block;
  std::uint32_t id_bytes, session_bytes, hash_ids;
  std::int32_t priority;
  std::int32_t closed_loop;

  std::size_t tail_bytes() const {
    return id_bytes + session_bytes + hash_ids * sizeof(std::uint64_t);
  }
};

[[noreturn]] void fail() {
  throw InputError(fmt::format("a temporary file for sorting the trace cannot be used: {}",
                               std::strerror(errno)));
}

void put(std::vector<char>& out, const void* bytes, std::size_t count) {
  const char* first = static_cast<const char*>(bytes);
  out.insert(out.end(), first, first + count);
}

}  // namespace

SortedRuns::SortedRuns(std::size_t piece_bytes)
    : piece_bytes_(piece_bytes), file_(std::tmpfile(), &std::fclose) {
  if (!file_) fail();
}

void SortedRuns::append(const Request& request) {
  Record record{};
  record.key = request.arrival.ns();
  if (!request.session.empty()) {
    std::int64_t& key = session_keys_[request.session];
    if (request.closed_loop) {
      record.key = key;
    } else {
      key = record.key;
    }
  }
  record.index = request.index;
  record.arrival_ns = request.arrival.ns();
  record.delay_ns = request.delay.ns();
  record.input_tokens = request.input_tokens;
  record.output_tokens = request.output_tokens;
  record.hash_block = request.hash_block;
  record.id_bytes = static_cast<std::uint32_t>(request.id.size());
  record.session_bytes = static_cast<std::uint32_t>(request.session.size());
  record.hash_ids = static_cast<std::uint32_t>(request.hash_ids.size());
  record.priority = request.priority;
  record.closed_loop = request.closed_loop ? 1 : 0;
  pending_.push_back({record.key, records_.size(), sizeof(Record) + record.tail_bytes()});
  put(records_, &record, sizeof(Record));
  put(records_, request.id.data(), request.id.size());
  put(records_, request.session.data(), request.session.size());
  put(records_, request.hash_ids.data(), request.hash_ids.size() * sizeof(std::uint64_t));
  if (records_.size() >= piece_bytes_) write_piece();
}

void SortedRuns::write_piece() {
  std::stable_sort(pending_.begin(), pending_.end(),
                   [](const Pending& a, const Pending& b) { return a.key < b.key; });
  const std::int64_t begin = written_;
  for (const Pending& record : pending_) {
    if (std::fwrite(records_.data() + record.offset, 1, record.length, file_.get()) !=
        record.length)
      fail();
    written_ += static_cast<std::int64_t>(record.length);
  }
  pieces_.push_back({begin, written_});
  records_.clear();
  pending_.clear();
}

void SortedRuns::finish(SimTime origin) {
  if (!pending_.empty()) write_piece();
  if (std::fflush(file_.get()) != 0) fail();
  origin_ = origin;
  records_ = {};
  pending_ = {};
  session_keys_ = {};
}

/// Merges the pieces; each is read through a buffer of its own.
class MergingReader final : public TraceReader {
 public:
  explicit MergingReader(std::shared_ptr<const SortedRuns> runs) : runs_(std::move(runs)) {
    for (std::size_t i = 0; i < runs_->pieces_.size(); ++i) {
      cursors_.push_back({runs_->pieces_[i].begin, runs_->pieces_[i].end, {}, 0});
      offer(i);
    }
  }

  bool next(Request& request) override {
    if (heads_.empty()) return false;
    const std::size_t piece = heads_.top().piece;
    heads_.pop();
    Record record;
    std::memcpy(&record, take(cursors_[piece], sizeof(Record)), sizeof(Record));
    fill(request, record, take(cursors_[piece], record.tail_bytes()));
    offer(piece);
    return true;
  }

 private:
  struct Cursor {
    std::int64_t at, end;  ///< bytes of the piece that are not in the buffer yet
    std::vector<char> buffer;
    std::size_t used;
  };
  struct Head {
    std::int64_t key;
    std::size_t piece;
    bool operator>(const Head& other) const {
      return key != other.key ? key > other.key : piece > other.piece;
    }
  };

  void offer(std::size_t piece) {
    Cursor& cursor = cursors_[piece];
    if (cursor.at == cursor.end && cursor.used == cursor.buffer.size()) return;
    Record record;
    std::memcpy(&record, peek(cursor, sizeof(Record)), sizeof(Record));
    heads_.push({record.key, piece});
  }

  const char* peek(Cursor& cursor, std::size_t bytes) {
    constexpr std::size_t kBufferBytes = std::size_t{1} << 18;
    const std::size_t left = cursor.buffer.size() - cursor.used;
    if (left < bytes) {
      const auto more = static_cast<std::size_t>(std::min<std::int64_t>(
          cursor.end - cursor.at, static_cast<std::int64_t>(std::max(kBufferBytes, bytes) - left)));
      cursor.buffer.erase(cursor.buffer.begin(),
                          cursor.buffer.begin() + static_cast<std::ptrdiff_t>(cursor.used));
      cursor.used = 0;
      cursor.buffer.resize(left + more);
      if (pread(fileno(runs_->file_.get()), cursor.buffer.data() + left, more, cursor.at) !=
          static_cast<ssize_t>(more)) {
        fail();
      }
      cursor.at += static_cast<std::int64_t>(more);
    }
    return cursor.buffer.data() + cursor.used;
  }
  const char* take(Cursor& cursor, std::size_t bytes) {
    const char* at = peek(cursor, bytes);
    cursor.used += bytes;
    return at;
  }

  void fill(Request& request, const Record& record, const char* tail) const {
    request.index = record.index;
    request.closed_loop = record.closed_loop != 0;
    request.arrival =
        request.closed_loop ? SimTime(0) : SimTime(record.arrival_ns) - runs_->origin_;
    request.delay = SimTime(record.delay_ns);
    request.input_tokens = record.input_tokens;
    request.output_tokens = record.output_tokens;
    request.priority = record.priority;
    request.hash_block = record.hash_block;
    request.id.assign(tail, record.id_bytes);
    request.session.assign(tail + record.id_bytes, record.session_bytes);
    request.hash_ids.resize(record.hash_ids);
    if (record.hash_ids == 0) return;  // memcpy takes no null pointer, whatever the size
    std::memcpy(request.hash_ids.data(), tail + record.id_bytes + record.session_bytes,
                record.hash_ids * sizeof(std::uint64_t));
  }

  std::shared_ptr<const SortedRuns> runs_;
  std::vector<Cursor> cursors_;
  std::priority_queue<Head, std::vector<Head>, std::greater<>> heads_;
};

std::unique_ptr<TraceReader> make_merging_reader(std::shared_ptr<const SortedRuns> runs) {
  return std::make_unique<MergingReader>(std::move(runs));
}

}  // namespace servesim
