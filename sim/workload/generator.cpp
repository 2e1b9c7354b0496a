#include "workload/generator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>
#include <vector>

#include "core/rng.hpp"

namespace servesim {
namespace {

std::int64_t whole_at_least(double value, std::int64_t least) {
  return std::max(least, static_cast<std::int64_t>(std::llround(value)));
}

class ArrivalClock {
 public:
  ArrivalClock(const ArrivalSpec& spec, std::uint64_t seed)
      : spec_(spec), rng_(seed, "generate.arrivals") {}

  SimTime next() {
    if (spec_.process == ArrivalSpec::Process::kAllAtOnce) return SimTime();
    now_s_ += interval() / spec_.rate_per_s;
    return SimTime::from_us(std::llround(now_s_ * 1e6));  // whole microseconds: short in the file
  }

 private:
  double interval() {
    switch (spec_.process) {
      case ArrivalSpec::Process::kGamma:
        return rng_.gamma(spec_.burstiness) / spec_.burstiness;
      case ArrivalSpec::Process::kPoisson:
        return rng_.exponential();
      case ArrivalSpec::Process::kConstant:
      case ArrivalSpec::Process::kAllAtOnce:
        break;
    }
    return 1.0;
  }

  const ArrivalSpec& spec_;
  Rng rng_;
  double now_s_ = 0;
};

/// Input and output lengths with the wanted rank correlation, through correlated normals.
class LengthSource {
 public:
  LengthSource(const GenerateSpec& spec, std::uint64_t seed)
      : spec_(spec),
        rng_(seed, "generate.lengths"),
        normal_correlation_(2.0 * std::sin(std::numbers::pi / 6.0 * spec.rank_correlation)) {}

  void draw(Request& request) {
    const double input = rng_.normal();
    const double own = rng_.normal();
    const double output = normal_correlation_ * input +
                          std::sqrt(1.0 - normal_correlation_ * normal_correlation_) * own;
    request.input_tokens = whole_at_least(spec_.input_tokens.at_normal(input), 1);
    request.output_tokens = whole_at_least(spec_.output_tokens.at_normal(output), 1);
    if (spec_.max_total_tokens > 0) limit(request);
  }

 private:
  void limit(Request& request) const {
    request.input_tokens = std::min(request.input_tokens, spec_.max_total_tokens - 2);
    request.output_tokens =
        std::min(request.output_tokens, spec_.max_total_tokens - 1 - request.input_tokens);
  }

  const GenerateSpec& spec_;
  Rng rng_;
  double normal_correlation_;
};

/// Hands out hash ids, shared and fresh.
class PrefixSource {
 public:
  PrefixSource(const PrefixSpec& spec, std::uint64_t seed)
      : spec_(spec),
        rng_(seed, "generate.prefixes"),
        system_blocks_(static_cast<std::size_t>(spec.system_tokens / spec.block_tokens)),
        next_id_(system_blocks_ * static_cast<std::uint64_t>(spec.groups)) {}

  /// Ids of all blocks of a prompt, the last partial one included, as in the Mooncake traces.
  void assign(Request& request) {
    const auto blocks = static_cast<std::size_t>((request.input_tokens + spec_.block_tokens - 1) /
                                                 spec_.block_tokens);
    request.hash_ids.clear();
    if (rng_.uniform() < spec_.reuse_probability) share_earlier(blocks, request.hash_ids);
    if (request.hash_ids.empty()) start(request.hash_ids);
    extend(request, blocks);
    remember(request.hash_ids);
  }

  /// The ids of the system prompt of a group drawn at random.
  void start(std::vector<std::uint64_t>& ids) {
    const std::uint64_t group = rng_.below(static_cast<std::uint64_t>(spec_.groups));
    ids.clear();
    for (std::size_t i = 0; i < system_blocks_; ++i) ids.push_back(group * system_blocks_ + i);
  }

  /// Cuts or lengthens, with fresh ids, to `blocks`.
  void extend(Request& request, std::size_t blocks) {
    request.hash_block = spec_.block_tokens;
    if (request.hash_ids.size() > blocks) request.hash_ids.resize(blocks);
    while (request.hash_ids.size() < blocks) request.hash_ids.push_back(next_id_++);
  }

  std::size_t system_blocks() const { return system_blocks_; }

 private:
  static constexpr std::size_t kMostRemembered = 8192;

  /// Of a few earlier prompts the one that has most of the wanted blocks.
  void share_earlier(std::size_t blocks, std::vector<std::uint64_t>& ids) {
    constexpr int kTries = 8;
    if (earlier_.empty()) return;
    const double fraction = std::clamp(spec_.reused_fraction.sample(rng_), 0.0, 1.0);
    const auto wanted =
        static_cast<std::size_t>(std::llround(fraction * static_cast<double>(blocks)));
    for (int i = 0; i < kTries && ids.size() < wanted; ++i) {
      const std::vector<std::uint64_t>& candidate = earlier();
      const std::size_t usable = std::min(wanted, candidate.size());
      if (usable > ids.size())
        ids.assign(candidate.begin(),
                   std::next(candidate.begin(), static_cast<std::ptrdiff_t>(usable)));
    }
  }

  const std::vector<std::uint64_t>& earlier() {
    auto distance = static_cast<std::size_t>(whole_at_least(spec_.reuse_distance.sample(rng_), 1));
    if (distance > earlier_.size()) distance = 1 + rng_.below(earlier_.size());
    return earlier_[(newest_ + earlier_.size() + 1 - distance) % earlier_.size()];
  }

  void remember(const std::vector<std::uint64_t>& ids) {
    if (earlier_.size() < kMostRemembered) {
      newest_ = earlier_.size();
      earlier_.push_back(ids);
    } else {
      newest_ = (newest_ + 1) % kMostRemembered;
      earlier_[newest_] = ids;
    }
  }

  const PrefixSpec& spec_;
  Rng rng_;
  std::size_t system_blocks_;
  std::uint64_t next_id_;
  std::vector<std::vector<std::uint64_t>> earlier_;  ///< a ring
  std::size_t newest_ = 0;
};

class Generator {
 public:
  Generator(const GenerateSpec& spec, std::uint64_t count, std::uint64_t seed,
            const std::function<void(const Request&)>& sink)
      : spec_(spec),
        count_(count),
        sink_(sink),
        arrivals_(spec.arrivals, seed),
        lengths_(spec, seed),
        turns_(seed, "generate.sessions") {
    if (spec.prefix) prefixes_.emplace(*spec.prefix, seed);
  }

  void run() {
    while (made_ < count_) {
      if (spec_.session) {
        make_session();
      } else {
        make_request();
      }
    }
  }

 private:
  void make_request() {
    Request request;
    request.arrival = arrivals_.next();
    lengths_.draw(request);
    if (prefixes_) prefixes_->assign(request);
    emit(request);
  }

  /// A session ends early when its next turn would pass the limit on total tokens.
  void make_session() {
    const SessionSpec& session = *spec_.session;
    Request request;
    request.session = fmt::format("s{}", sessions_++);
    request.arrival = arrivals_.next();
    const std::int64_t turns = whole_at_least(session.turns.sample(turns_), 1);
    lengths_.draw(request);
    if (prefixes_) prefixes_->start(request.hash_ids);
    for (std::int64_t turn = 0; turn < turns && made_ < count_; ++turn) {
      if (turn > 0 && !next_turn(request)) break;
      if (prefixes_) prefixes_->extend(request, whole_blocks(request));
      emit(request);
    }
  }

  bool next_turn(Request& request) {
    const SessionSpec& session = *spec_.session;
    const std::int64_t context = request.input_tokens;
    Request fresh;
    lengths_.draw(fresh);
    request.output_tokens = fresh.output_tokens;
    if (turns_.uniform() < session.compaction_probability) {
      request.input_tokens = std::min(context, fresh.input_tokens);
      if (prefixes_)
        request.hash_ids.resize(std::min(prefixes_->system_blocks(), request.hash_ids.size()));
    } else {
      request.input_tokens = context + whole_at_least(session.growth_tokens.sample(turns_), 1);
    }
    request.closed_loop = true;
    request.delay = SimTime::from_ms(std::llround(session.think_s.sample(turns_) * 1e3));
    return spec_.max_total_tokens == 0 ||
           request.input_tokens + request.output_tokens < spec_.max_total_tokens;
  }

  /// Only whole blocks have ids: the partial one still changes when the context grows.
  std::size_t whole_blocks(const Request& request) const {
    return static_cast<std::size_t>(request.input_tokens / spec_.prefix->block_tokens);
  }

  void emit(Request& request) {
    request.index = made_++;
    sink_(request);
  }

  const GenerateSpec& spec_;
  std::uint64_t count_;
  const std::function<void(const Request&)>& sink_;
  ArrivalClock arrivals_;
  LengthSource lengths_;
  Rng turns_;
  std::optional<PrefixSource> prefixes_;
  std::uint64_t made_ = 0;
  std::uint64_t sessions_ = 0;
};

std::string milliseconds(SimTime time) {
  return fmt::format("{}", static_cast<double>(time.ns()) / 1e6);
}

}  // namespace

void generate(const GenerateSpec& spec, std::uint64_t count, std::uint64_t seed,
              const std::function<void(const Request&)>& sink) {
  Generator(spec, count, seed, sink).run();
}

void generate(const GenerateSpec& spec, std::uint64_t count, std::uint64_t seed,
              std::ostream& out) {
  out << fmt::format("# simulate generate --spec {} --seed {} --num-prompts {}\n", spec.name, seed,
                     count);
  generate(spec, count, seed, [&out](const Request& request) { write_request(request, out); });
}

void write_request(const Request& request, std::ostream& out) {
  fmt::memory_buffer line;
  auto end = std::back_inserter(line);
  fmt::format_to(end, "{{");
  if (!request.id.empty()) fmt::format_to(end, "\"id\": \"{}\", ", request.id);
  if (!request.session.empty()) fmt::format_to(end, "\"session_id\": \"{}\", ", request.session);
  fmt::format_to(end, "\"{}\": {}, \"input_tokens\": {}, \"output_tokens\": {}",
                 request.closed_loop ? "delay_ms" : "arrival_ms",
                 milliseconds(request.closed_loop ? request.delay : request.arrival),
                 request.input_tokens, request.output_tokens);
  if (request.priority != 0) fmt::format_to(end, ", \"priority\": {}", request.priority);
  if (request.hash_block > 0) {
    fmt::format_to(end, ", \"hash_block\": {}, \"hash_ids\": [", request.hash_block);
    for (std::size_t i = 0; i < request.hash_ids.size(); ++i) {
      fmt::format_to(end, "{}{}", i == 0 ? "" : ", ", request.hash_ids[i]);
    }
    fmt::format_to(end, "]");
  }
  fmt::format_to(end, "}}\n");
  out.write(line.data(), static_cast<std::streamsize>(line.size()));
}

}  // namespace servesim
