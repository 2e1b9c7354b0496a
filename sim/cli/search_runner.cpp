#include "cli/search_runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include "cli/interrupt.hpp"
#include "cli/progress.hpp"
#include "cli/runner.hpp"
#include "cli/search_probe.hpp"
#include "core/error.hpp"

namespace servesim {
namespace {

/// Threads that take tasks as soon as those they learn from are done.
class SearchPool {
 public:
  SearchPool(const std::vector<SearchTask>& tasks, const TraceSource& trace,
             const SearchOptions& options)
      : tasks_(tasks),
        options_(options),
        prober_(trace, options),
        results_(tasks.size()),
        errors_(tasks.size()),
        followers_(tasks.size()) {
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      if (tasks[i].predecessor == i) {
        ready_.insert(i);
      } else {
        followers_[tasks[i].predecessor].push_back(i);
      }
    }
  }

  SearchOutcome run() {
    const std::size_t count = std::clamp<std::size_t>(options_.threads, 1, tasks_.size());
    {
      std::vector<std::jthread> workers;
      for (std::size_t i = 0; i < count; ++i) workers.emplace_back([this] { work(); });
      supervise();
    }
    for (const std::exception_ptr& error : errors_) {
      if (error) std::rethrow_exception(error);
    }
    SearchOutcome outcome;
    outcome.interrupted = interrupted();
    outcome.result.settings = options_.settings;
    for (std::optional<EvaluatedConfig>& result : results_) {
      if (result) outcome.result.evaluated.push_back(std::move(*result));
    }
    rank(outcome.result);
    return outcome;
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return stop_ || !ready_.empty() || done_ == tasks_.size(); });
      if (stop_ || done_ == tasks_.size()) return;
      const std::size_t at = *ready_.begin();
      ready_.erase(ready_.begin());
      const EvaluatedConfig* guess = guess_for(at);
      lock.unlock();
      std::optional<EvaluatedConfig> result;
      try {
        result = prober_.evaluate(tasks_[at], guess);
      } catch (...) {
        errors_[at] = std::current_exception();
      }
      lock.lock();
      if (!result) stop_ = true;  // a fault, or an interrupt
      results_[at] = std::move(result);
      ++done_;
      for (const std::size_t follower : followers_[at]) ready_.insert(follower);
      changed_.notify_all();
    }
  }

  /// The nearest evaluated configuration before `at`. Called with the lock held.
  const EvaluatedConfig* guess_for(std::size_t at) const {
    while (tasks_[at].predecessor != at) {
      at = tasks_[at].predecessor;
      if (results_[at] && results_[at]->status != SearchStatus::kInfeasible) return &*results_[at];
    }
    return nullptr;
  }

  void supervise() {
    constexpr std::chrono::milliseconds kPause(50);
    ProgressLine line(options_.progress);
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, kPause, [this] { return stop_ || done_ == tasks_.size(); })) {
      if (interrupted()) {
        stop_ = true;
        break;
      }
      line.update(progress());
    }
    changed_.notify_all();
    lock.unlock();
    if (stop_) prober_.stop();
  }

  /// Called with the lock held.
  ProgressState progress() const {
    ProgressState state;
    state.runs = tasks_.size();
    state.runs_done = done_;
    state.noun = "configuration";
    state.share = static_cast<double>(done_) / static_cast<double>(tasks_.size());
    state.requests_read = prober_.requests();
    return state;
  }

  const std::vector<SearchTask>& tasks_;
  const SearchOptions& options_;
  Prober prober_;
  std::vector<std::optional<EvaluatedConfig>> results_;
  std::vector<std::exception_ptr> errors_;
  std::vector<std::vector<std::size_t>> followers_;
  std::set<std::size_t> ready_;
  std::size_t done_ = 0;
  bool stop_ = false;
  std::mutex mutex_;  // guards all of the above but the prober
  std::condition_variable changed_;
};

}  // namespace

SearchOutcome run_search(const std::vector<SearchTask>& tasks, const TraceSource& trace,
                         const SearchOptions& options) {
  return SearchPool(tasks, trace, options).run();
}

}  // namespace servesim
