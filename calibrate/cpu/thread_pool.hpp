/// Threads that stay awake between kernels, so that a small kernel is not timed with their start.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace servesim::calibrate {

class ThreadPool {
 public:
  /// REQUIRES: threads >= 1; the caller is one of them.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls body(begin, end) on parts of [0, count); parts are handed out as threads get free, each
  /// at least `grain` long. Returns when all are done.
  void run(std::int64_t count, std::int64_t grain,
           const std::function<void(std::int64_t, std::int64_t)>& body);

  /// CPU time that the parts have taken so far, over the number of threads, in microseconds: what
  /// runs take on cores that nobody else wants. Work that was not cut into parts counts whole.
  double busy_us() const { return static_cast<double>(busy_ns_.load()) * 1e-3 / size(); }

 private:
  using Body = std::function<void(std::int64_t, std::int64_t)>;
  void timed(const Body& body, std::int64_t begin, std::int64_t end, int weight);
  void work();
  /// Does parts of round `round` until none is left or another round has begun.
  void take_parts(std::uint64_t round);

  std::vector<std::thread> workers_;
  /// The round in the upper half, the next part in the lower: a thread that wakes late takes no
  /// part of a round it does not know, so nobody waits for threads that are not running.
  std::atomic<std::uint64_t> state_{0};
  std::atomic<std::int64_t> finished_{0};
  std::atomic<std::int64_t> busy_ns_{0};
  std::atomic<bool> stop_{false};
  std::atomic<std::int64_t> parts_{0};
  std::int64_t count_ = 0, part_ = 1;
  const std::function<void(std::int64_t, std::int64_t)>* body_ = nullptr;
};

}  // namespace servesim::calibrate
