/// Do binned curves keep every event, whatever the order and the span of what they are given?
#include <algorithm>
#include <random>

#include "report/binned_series.hpp"
#include "support/catch.hpp"

namespace servesim {
namespace {

/// The slow way: keeps all events, and integrates each over each bin.
struct BinnedOracle {
  struct Event {
    std::int64_t from, to;
    double first, last;
  };
  std::vector<Event> events;

  double integral(std::int64_t a, std::int64_t b) const {
    double sum = 0;
    for (const Event& e : events) {
      const std::int64_t from = std::max(a, e.from);
      const std::int64_t to = std::min(b, e.to);
      if (from >= to) continue;
      const auto value = [&e](std::int64_t t) {
        const double share = static_cast<double>(t - e.from) / static_cast<double>(e.to - e.from);
        return e.first + (e.last - e.first) * share;
      };
      sum += 0.5 * (value(from) + value(to)) * static_cast<double>(to - from);
    }
    return sum;
  }
  double maximum(std::int64_t a, std::int64_t b) const {
    double most = 0;
    for (const Event& e : events) {
      if (e.from < b && e.to > a) most = std::max(most, e.first);
    }
    return most;
  }
};

double total_of(const std::vector<double>& values) {
  double total = 0;
  for (const double value : values) total += value;
  return total;
}

}  // namespace

TEST_CASE("a level over three bins and a half") {
  BinnedSeries series(1, 8, SimTime(10));
  series.add(0, SimTime(100), SimTime(135), 2);
  CHECK(series.used() == 4);
  CHECK(series.start() == SimTime(100));
  CHECK(series.integral(0) == std::vector<double>{20, 20, 20, 10});
  CHECK(series.mean(0) == std::vector<double>{2, 2, 2, 1});
}

TEST_CASE("the width doubles when time outgrows the bins, and nothing is lost") {
  BinnedSeries series(1, 4, SimTime(10));
  series.add(0, SimTime(0), SimTime(40), 1);
  series.add(0, SimTime(40), SimTime(41), 5);
  CHECK(series.width() == SimTime(20));
  CHECK(series.integral(0) == std::vector<double>{20, 20, 5});
  series.add(0, SimTime(1'000'000), SimTime(1'000'001), 3);
  CHECK(series.used() <= 4);
  CHECK(series.used() > 2);
  CHECK(total_of(series.integral(0)) == 48);
}

TEST_CASE("what lies before the first event finds room, too") {
  BinnedSeries series(1, 4, SimTime(10));
  series.add(0, SimTime(25), SimTime(30), 1);
  series.add(0, SimTime(3), SimTime(4), 7);
  CHECK(series.start() == SimTime(-5));
  CHECK(series.integral(0) == std::vector<double>{7, 0, 0, 5});
  series.add(0, SimTime(-1000), SimTime(-999), 1);
  CHECK(total_of(series.integral(0)) == 13);
}

TEST_CASE("amounts are spread evenly, and one of no length goes into one bin") {
  BinnedSeries series(1, 8, SimTime(10));
  series.add_amount(0, SimTime(0), SimTime(20), 6);
  series.add_amount(0, SimTime(20), SimTime(20), 4);
  CHECK(series.integral(0) == std::vector<double>{3, 3, 4});
}

TEST_CASE("empty and reversed spans add nothing") {
  BinnedSeries series(1, 8, SimTime(10));
  series.add(0, SimTime(5), SimTime(5), 3);
  series.add(0, SimTime(5), SimTime(4), 3);
  series.add_ramp(0, SimTime(5), SimTime(5), 3, 4);
  CHECK(series.used() == 0);
  CHECK(series.integral(0).empty());
}

TEST_CASE("random levels, ramps and maxima agree with the slow way") {
  std::mt19937_64 random(7);
  const auto up_to = [&random](std::int64_t most) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most + 1));
  };
  for (int round = 0; round < 300; ++round) {
    const std::size_t bins = 2 + static_cast<std::size_t>(up_to(30));
    const std::int64_t span = std::int64_t{1} << up_to(34);
    BinnedSeries series(3, bins, SimTime(1 + up_to(1000)));
    BinnedOracle levels, ramps, maxima;
    const auto pieces = 1 + up_to(60);
    for (std::int64_t i = 0; i < pieces; ++i) {
      const std::int64_t from = up_to(span) - span / 4;
      const std::int64_t to = from + 1 + up_to(span / (1 + up_to(50)));
      const auto first = static_cast<double>(up_to(100));
      const auto last = static_cast<double>(up_to(100));
      series.add(0, SimTime(from), SimTime(to), first);
      levels.events.push_back({from, to, first, first});
      series.add_ramp(1, SimTime(from), SimTime(to), first, last);
      ramps.events.push_back({from, to, first, last});
      series.raise(2, SimTime(from), SimTime(to), first);
      maxima.events.push_back({from, to, first, first});
    }
    const std::vector<double> level = series.integral(0);
    const std::vector<double> ramp = series.integral(1);
    REQUIRE(series.used() <= bins);
    REQUIRE(level.size() == series.used());
    for (std::size_t bin = 0; bin < series.used(); ++bin) {
      const std::int64_t a =
          series.start().ns() + static_cast<std::int64_t>(bin) * series.width().ns();
      const std::int64_t b = a + series.width().ns();
      const double scale = 1e-9 * static_cast<double>(series.width().ns()) * 1e4 + 1e-6;
      INFO("round " << round << " bin " << bin << " of " << series.used());
      REQUIRE(level[bin] == Approx(levels.integral(a, b)).epsilon(1e-9).margin(scale));
      REQUIRE(ramp[bin] == Approx(ramps.integral(a, b)).epsilon(1e-9).margin(scale));
      REQUIRE(series.maximum(2)[bin] == maxima.maximum(a, b));
    }
    REQUIRE(total_of(level) == Approx(levels.integral(-span, 3 * span)).epsilon(1e-9).margin(1e-6));
  }
}

}  // namespace servesim
