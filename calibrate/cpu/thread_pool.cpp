#include "cpu/thread_pool.hpp"

#include <time.h>

#include <algorithm>

namespace servesim::calibrate {
namespace {

constexpr int kRoundShift = 32;
constexpr std::uint64_t kPartMask = (std::uint64_t{1} << kRoundShift) - 1;

std::int64_t thread_cpu_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

void ThreadPool::timed(const Body& body, std::int64_t begin, std::int64_t end, int weight) {
  const std::int64_t start = thread_cpu_ns();
  body(begin, end);
  busy_ns_.fetch_add(weight * (thread_cpu_ns() - start));
}

ThreadPool::ThreadPool(int threads) {
  for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { work(); });
}

ThreadPool::~ThreadPool() {
  stop_ = true;
  parts_ = 0;
  state_.fetch_add(std::uint64_t{1} << kRoundShift);
  state_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::work() {
  std::uint64_t seen = 0;
  for (;;) {
    std::uint64_t state = state_.load();
    // Spins first: a kernel follows the last one within microseconds.
    constexpr int kSpins = 50'000;
    for (int i = 0; state >> kRoundShift == seen; ++i) {
      if (i > kSpins) state_.wait(state);
      state = state_.load();
    }
    seen = state >> kRoundShift;
    if (stop_) return;
    take_parts(seen);
  }
}

void ThreadPool::take_parts(std::uint64_t round) {
  std::uint64_t state = state_.load();
  while (state >> kRoundShift == round) {
    const auto part = static_cast<std::int64_t>(state & kPartMask);
    if (part >= parts_) return;
    if (!state_.compare_exchange_weak(state, state + 1)) continue;
    // The round cannot end before this part has: what it consists of stays.
    timed(*body_, part * part_, std::min((part + 1) * part_, count_), 1);
    finished_.fetch_add(1);
    state = state_.load();
  }
}

void ThreadPool::run(std::int64_t count, std::int64_t grain,
                     const std::function<void(std::int64_t, std::int64_t)>& body) {
  // Four parts a thread: one that is held up by another tenant does not hold up all.
  constexpr std::int64_t kPartsPerThread = 4;
  const std::int64_t wanted = count / (kPartsPerThread * size());
  const std::int64_t part = std::max<std::int64_t>(wanted / grain * grain, grain);
  const std::int64_t parts = (count + part - 1) / part;
  if (workers_.empty() || parts <= 1) {
    if (count > 0) timed(body, 0, count, size());
    return;
  }
  const std::uint64_t round = (state_.load() >> kRoundShift) + 1;
  // Closed while the round is described: late threads of the last one can take nothing.
  state_.store((round - 1) << kRoundShift | kPartMask);
  finished_ = 0;
  parts_ = parts;
  part_ = part;
  count_ = count;
  body_ = &body;
  state_.store(round << kRoundShift);
  state_.notify_all();
  take_parts(round);
  constexpr int kSpins = 20'000;
  for (int i = 0; finished_.load() < parts; ++i) {
    if (i > kSpins) std::this_thread::yield();
  }
}

}  // namespace servesim::calibrate
