#include "workload/load.hpp"

#include <cmath>
#include <limits>

#include "support/catch.hpp"
#include "unit/workload/trace_support.hpp"

namespace servesim::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// One request per second, every third the closed-loop follower of the one before.
class Ticks final : public TraceReader {
 public:
  explicit Ticks(std::uint64_t count) : count_(count) {}
  bool next(Request& request) override {
    if (made_ == count_) return false;
    request = Request();
    request.index = made_;
    request.closed_loop = made_ % 3 == 2;
    (request.closed_loop ? request.delay : request.arrival) =
        SimTime(static_cast<std::int64_t>(made_) * 1'000'000'000);
    ++made_;
    return true;
  }

 private:
  std::uint64_t count_;
  std::uint64_t made_ = 0;
};

std::vector<Request> loaded(std::uint64_t count, const LoadOptions& options) {
  return read_all(*apply_load(std::make_unique<Ticks>(count), options));
}

std::vector<double> intervals(const std::vector<Request>& requests) {
  std::vector<double> gaps;
  double last = 0;
  for (const Request& request : requests) {
    if (request.closed_loop) continue;
    gaps.push_back(request.arrival.seconds() - last);
    last = request.arrival.seconds();
  }
  return gaps;
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double variation(const std::vector<double>& values) {
  const double center = mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - center) * (value - center);
  return std::sqrt(squares / static_cast<double>(values.size())) / center;
}

TEST_CASE("without options a trace stays as it is") {
  const auto requests = loaded(6, {});
  CHECK(requests.size() == 6);
  CHECK(requests[4].arrival.seconds() == 4.0);
}

TEST_CASE("--num-prompts and --time-scale") {
  LoadOptions options;
  options.num_prompts = 4;
  options.time_scale = 0.5;
  const auto requests = loaded(10, options);
  REQUIRE(requests.size() == 4);
  CHECK(requests[3].arrival.seconds() == 1.5);
  CHECK(requests[2].delay.seconds() == 1.0);
}

TEST_CASE("--request-rate is the mean rate, --burstiness the shape") {
  for (const double burstiness : {0.25, 1.0, 4.0}) {
    LoadOptions options;
    options.request_rate = 8;
    options.burstiness = burstiness;
    options.seed = 3;
    const auto gaps = intervals(loaded(300'000, options));
    CHECK(mean(gaps) == Approx(1.0 / 8).epsilon(0.02));
    CHECK(variation(gaps) == Approx(1 / std::sqrt(burstiness)).epsilon(0.02));
  }
}

TEST_CASE("--request-rate keeps order and closed loops, and depends on the seed alone") {
  LoadOptions options;
  options.request_rate = 2;
  options.seed = 5;
  const auto first = loaded(300, options);
  const auto again = loaded(300, options);
  options.seed = 6;
  const auto other = loaded(300, options);
  CHECK(first[100].arrival == again[100].arrival);
  CHECK(first[100].arrival != other[100].arrival);
  CHECK(first[101].closed_loop);
  CHECK(first[101].delay.seconds() == 101);
  for (const double gap : intervals(first)) CHECK(gap >= 0);
}

TEST_CASE("--request-rate inf: all at time 0") {
  LoadOptions options;
  options.request_rate = kInfinity;
  for (const Request& request : loaded(30, options)) CHECK(request.arrival.ns() == 0);
}

TEST_CASE("loads that make no sense are refused") {
  const auto message = [](auto change) {
    LoadOptions options;
    options.request_rate = 1;
    change(options);
    return error_of([&] { loaded(1, options); });
  };
  CHECK(contains(message([](LoadOptions& o) { o.request_rate = 0; }), "--request-rate: 0"));
  CHECK(contains(message([](LoadOptions& o) { o.request_rate = -1; }), "--request-rate: -1"));
  CHECK(contains(message([](LoadOptions& o) { o.request_rate = std::nan(""); }), "--request-rate"));
  CHECK(contains(message([](LoadOptions& o) { o.burstiness = 0; }), "--burstiness: 0"));
  CHECK(contains(message([](LoadOptions& o) { o.burstiness = kInfinity; }), "--burstiness: inf"));
  CHECK(contains(message([](LoadOptions& o) { o.time_scale = 0; }), "--time-scale: 0"));
  CHECK(contains(message([](LoadOptions& o) { o.request_rate = 1e-12; }), "longer than"));
  LoadOptions options;
  options.time_scale = 1e18;
  CHECK(contains(error_of([&] { loaded(20, options); }), "--time-scale"));
}

}  // namespace
}  // namespace servesim::test
