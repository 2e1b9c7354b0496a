#include "host_bench.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "patterns.hpp"
#include "statistics.hpp"
#include "text.hpp"

namespace servesim::calibrate {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// A connected pair of loopback sockets.
class Loopback {
 public:
  Loopback() {
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    auto* any = reinterpret_cast<sockaddr*>(&address);
    if (listener >= 0 && bind(listener, any, length) == 0 && listen(listener, 1) == 0 &&
        getsockname(listener, any, &length) == 0) {
      client_ = socket(AF_INET, SOCK_STREAM, 0);
      if (client_ >= 0 && connect(client_, any, length) == 0) {
        server_ = accept(listener, nullptr, nullptr);
      }
    }
    if (listener >= 0) close(listener);
    const int on = 1;
    const timeval patience{2, 0};  // a stand-in must not hang a calibration
    for (const int fd : {client_, server_}) {
      if (fd < 0) continue;
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
      setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    }
  }
  ~Loopback() {
    for (const int fd : {client_, server_}) {
      if (fd >= 0) close(fd);
    }
  }
  Loopback(const Loopback&) = delete;
  Loopback& operator=(const Loopback&) = delete;

  bool connected() const { return server_ >= 0; }
  int client() const { return client_; }
  int server() const { return server_; }

 private:
  int client_ = -1, server_ = -1;
};

bool send_all(int fd, const std::string& text) {
  std::size_t sent = 0;
  while (sent < text.size()) {
    const ssize_t n = send(fd, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) return false;
    sent += static_cast<std::size_t>(n);
  }
  return true;
}

/// Reads until `bytes` have come.
std::string receive(int fd, std::size_t bytes) {
  std::string text;
  char part[4096];
  while (text.size() < bytes) {
    const ssize_t n = recv(fd, part, std::min(sizeof(part), bytes - text.size()), 0);
    if (n <= 0) break;
    text.append(part, static_cast<std::size_t>(n));
  }
  return text;
}

double front_end_before_ms(Loopback& sockets, const GreedyTokenizer& tokenizer, int repeat) {
  const std::string prompt = tokenizer.text(1000, static_cast<std::uint64_t>(repeat));
  const std::string body =
      "{\"model\": \"m\", \"max_tokens\": 128, \"stream\": true, \"prompt\": " +
      json_string(prompt) + "}";
  const std::string request = print_to_string(
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Content-Length: %zu\r\n\r\n%s",
      body.size(), body.c_str());
  const auto start = Clock::now();
  std::thread sender([&] { send_all(sockets.client(), request); });
  const std::string got = receive(sockets.server(), request.size());
  const auto header = got.find("\r\n\r\n");
  const std::string json = header == std::string::npos ? "" : got.substr(header + 4);
  const std::vector<int> tokens = tokenizer.encode(json_text_value(json, "prompt"));
  const double ms = ms_since(start);
  sender.join();
  return tokens.empty() ? -1 : ms;
}

double front_end_after_ms(Loopback& sockets, const GreedyTokenizer& tokenizer, int repeat) {
  const auto start = Clock::now();
  const std::string text = tokenizer.decode({256 + repeat});
  const std::string event =
      "data: {\"choices\": [{\"index\": 0, \"text\": " + json_string(text) + "}]}\n\n";
  if (!send_all(sockets.server(), event)) return -1;
  const std::string got = receive(sockets.client(), event.size());
  return got == event ? ms_since(start) : -1;
}

/// What a scheduler writes for a decode step, for `sequences` of them.
class DecodeStep {
 public:
  explicit DecodeStep(int sequences) : tables_(static_cast<std::size_t>(sequences)) {
    for (std::size_t s = 0; s < tables_.size(); ++s) tables_[s].resize(64 + s % 64, 1);
    lengths_.resize(tables_.size(), 1024);
    tokens_.resize(tables_.size());
    next_block_ = 1;
  }
  double ms() {
    const auto start = Clock::now();
    inputs_.clear();
    positions_.clear();
    slots_.clear();
    flat_.clear();
    for (std::size_t s = 0; s < tables_.size(); ++s) {
      if (++lengths_[s] % 16 == 0) tables_[s].push_back(next_block_++);
      tokens_[s].push_back(static_cast<int>(lengths_[s]));
      inputs_.push_back(tokens_[s].back());
      positions_.push_back(lengths_[s]);
      slots_.push_back(tables_[s].back() * 16 + lengths_[s] % 16);
      flat_.insert(flat_.end(), tables_[s].begin(), tables_[s].end());
    }
    return flat_.empty() ? -1 : ms_since(start);
  }

 private:
  std::vector<std::vector<std::int64_t>> tables_;
  std::vector<std::vector<int>> tokens_;
  std::vector<std::int64_t> lengths_, positions_, slots_, flat_;
  std::vector<int> inputs_;
  std::int64_t next_block_ = 0;
};

}  // namespace

GreedyTokenizer::GreedyTokenizer(int words, std::uint64_t seed) {
  for (int byte = 0; byte < 256; ++byte) entries_.emplace_back(1, static_cast<char>(byte));
  const std::string consonants = "bcdfghklmnprstvw", vowels = "aeiou";
  for (std::uint64_t i = 0; static_cast<int>(entries_.size()) < 256 + words; ++i) {
    std::string word = random_bits(seed, 9 * i) % 2 != 0 ? " " : "";
    for (std::uint64_t syllable = 0; syllable < 1 + random_bits(seed, 9 * i + 1) % 3; ++syllable) {
      word += consonants[random_bits(seed, 9 * i + 2 + 2 * syllable) % consonants.size()];
      word += vowels[random_bits(seed, 9 * i + 3 + 2 * syllable) % vowels.size()];
    }
    if (!ids_.emplace(word, static_cast<int>(entries_.size())).second) continue;
    longest_ = std::max(longest_, word.size());
    entries_.push_back(word);
  }
  for (int byte = 0; byte < 256; ++byte)
    ids_.emplace(entries_[static_cast<std::size_t>(byte)], byte);
}

std::vector<int> GreedyTokenizer::encode(const std::string& text) const {
  std::vector<int> tokens;
  for (std::size_t at = 0; at < text.size();) {
    for (std::size_t length = std::min(longest_, text.size() - at); length > 0; --length) {
      const auto found = ids_.find(text.substr(at, length));
      if (found == ids_.end()) continue;
      tokens.push_back(found->second);
      at += length;
      break;
    }
  }
  return tokens;
}

std::string GreedyTokenizer::decode(const std::vector<int>& tokens) const {
  std::string text;
  for (const int token : tokens)
    text += entries_[static_cast<std::size_t>(token) % entries_.size()];
  return text;
}

std::string GreedyTokenizer::text(int tokens, std::uint64_t seed) const {
  std::string text;
  for (int i = 0; i < tokens; ++i) {
    text +=
        entries_[256 + random_bits(seed, static_cast<std::uint64_t>(i)) % (entries_.size() - 256)];
  }
  return text;
}

std::string json_text_value(const std::string& json, const std::string& key) {
  auto at = json.find("\"" + key + "\"");
  if (at == std::string::npos) return {};
  at = json.find('"', json.find(':', at));
  std::string value;
  while (at != std::string::npos && ++at < json.size() && json[at] != '"') {
    if (json[at] != '\\') {
      value += json[at];
    } else if (++at < json.size() && json[at] == 'u') {
      value += static_cast<char>(std::strtol(json.substr(at + 1, 4).c_str(), nullptr, 16));
      at += 4;
    } else if (at < json.size()) {
      value += json[at] == 'n' ? '\n' : json[at] == 't' ? '\t' : json[at];
    }
  }
  return value;
}

HostTimes measure_host(int repeats) {
  HostTimes times;
  Loopback sockets;
  if (!sockets.connected()) return times;
  const GreedyTokenizer tokenizer(2000, 1);
  DecodeStep step(256);
  std::vector<double> before, after, steps;
  for (int i = 0; i < repeats; ++i) {
    before.push_back(front_end_before_ms(sockets, tokenizer, i));
    after.push_back(front_end_after_ms(sockets, tokenizer, i));
    steps.push_back(step.ms());
    if (before.back() < 0 || after.back() < 0) return times;
  }
  return {true, median(before), median(after), median(steps)};
}

}  // namespace servesim::calibrate
