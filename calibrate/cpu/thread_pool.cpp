#include "cpu/thread_pool.hpp"

#include <algorithm>

namespace servesim::calibrate {
namespace {

/// Waits for `ready`, spinning first: a kernel follows the last one within microseconds. After that
/// it yields, since other tenants want the core too.
template <class Ready>
void await(const Ready& ready) {
  constexpr int kSpins = 20'000;
  for (int i = 0; !ready(); ++i) {
    if (i > kSpins) std::this_thread::yield();
  }
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
  for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { work(); });
}

ThreadPool::~ThreadPool() {
  stop_ = true;
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::work() {
  std::uint64_t seen = 0;
  for (;;) {
    for (int i = 0; round_.load(std::memory_order_acquire) == seen; ++i) {
      constexpr int kSpins = 50'000;
      if (i > kSpins) round_.wait(seen);
    }
    ++seen;
    if (stop_) return;
    take_parts();
    done_.fetch_add(1, std::memory_order_release);
  }
}

void ThreadPool::take_parts() {
  for (;;) {
    const std::int64_t begin = next_.fetch_add(part_, std::memory_order_relaxed);
    if (begin >= count_) return;
    (*body_)(begin, std::min(begin + part_, count_));
  }
}

void ThreadPool::run(std::int64_t count, std::int64_t grain,
                     const std::function<void(std::int64_t, std::int64_t)>& body) {
  // Four parts a thread: one that is held up by another tenant does not hold up all.
  constexpr std::int64_t kPartsPerThread = 4;
  const std::int64_t wanted = count / (kPartsPerThread * size());
  part_ = std::max<std::int64_t>(wanted / grain * grain, grain);
  count_ = count;
  body_ = &body;
  next_.store(0, std::memory_order_relaxed);
  if (workers_.empty() || count <= part_) {
    take_parts();
    return;
  }
  done_.store(0, std::memory_order_relaxed);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  take_parts();
  await([this] {
    return done_.load(std::memory_order_acquire) == static_cast<int>(workers_.size());
  });
}

}  // namespace servesim::calibrate
