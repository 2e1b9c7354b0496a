// What many timings come to.
#include "statistics.hpp"

#include <cmath>

#include "patterns.hpp"
#include "support/catch.hpp"

using namespace servesim::calibrate;

TEST_CASE("quantiles lie between neighbours", "[calibrate]") {
  CHECK(quantile({3, 1, 2}, 0.5) == Approx(2));
  CHECK(quantile({4, 1, 2, 3}, 0.5) == Approx(2.5));
  CHECK(quantile({1, 2, 3, 4, 5}, 0.9) == Approx(4.6));
  CHECK(quantile({7}, 0.25) == Approx(7));
  CHECK(quantile({1, 9}, 0) == Approx(1));
  CHECK(quantile({1, 9}, 1) == Approx(9));
}

TEST_CASE("the least disturbed pass counts", "[calibrate]") {
  const Summary s = summarise({{10, 11, 12}, {20, 21, 22}, {}});
  CHECK(s.us == Approx(11));
  CHECK(s.least == Approx(10));
  CHECK(s.samples == 6);
  CHECK(s.passes == 2);
  CHECK(s.spread > 0.5);
  CHECK(summarise({{}, {}}).samples == 0);
  CHECK(summarise({{5, 5, 5, 5}}).spread == Approx(0));
}

TEST_CASE("an outlier does not move the median", "[calibrate]") {
  CHECK(summarise({{10, 10, 10, 10, 500}}).us == Approx(10));
}

TEST_CASE("sustained slowing is found with its time constant", "[calibrate]") {
  std::vector<double> at, us;
  for (int i = 0; i < 400; ++i) {
    at.push_back(0.002 * i);
    const double noise = 0.004 * (random_unit(3, static_cast<std::uint64_t>(i)) - 0.5f);
    us.push_back((110 - 10 * std::exp(-at.back() / 0.04)) * (1 + noise));
  }
  const Sustained s = fit_sustained(at, us);
  REQUIRE(s.slows);
  CHECK(s.time_constant_s == Approx(0.04).epsilon(0.15));
  CHECK(s.ratio() == Approx(100.0 / 110).epsilon(0.01));
}

TEST_CASE("noise alone is no slowing, nor is speeding up", "[calibrate]") {
  std::vector<double> at, flat, falling;
  for (int i = 0; i < 200; ++i) {
    at.push_back(0.01 * i);
    flat.push_back(100 + 5 * random_unit(9, static_cast<std::uint64_t>(i)));
    falling.push_back(120 - 10 * (1 - std::exp(-at.back() / 0.2)));
  }
  CHECK_FALSE(fit_sustained(at, flat).slows);
  CHECK(fit_sustained(at, flat).ratio() == Approx(1));
  CHECK_FALSE(fit_sustained(at, falling).slows);
  CHECK_FALSE(fit_sustained({0, 1}, {5, 6}).slows);
  CHECK(fit_sustained({}, {}).ratio() == Approx(1));
}

TEST_CASE("a sum of terms is recovered, and none is negative", "[calibrate]") {
  const std::vector<double> ones(40, 1.0);
  std::vector<double> a, b, us;
  for (std::uint64_t i = 0; i < 40; ++i) {
    a.push_back(1e6 * (1 + random_unit(5, i)));
    b.push_back(1e3 * random_unit(6, i));
    us.push_back(7 + 2e-5 * a.back() + 0.01 * b.back());
  }
  const auto exact = fit_nonnegative({ones, a, b}, us);
  REQUIRE(exact.size() == 3);
  CHECK(exact[0] == Approx(7).epsilon(1e-6));
  CHECK(exact[1] == Approx(2e-5).epsilon(1e-6));
  CHECK(exact[2] == Approx(0.01).epsilon(1e-6));
  // A term that would have to be negative is left out; the others do what they can.
  for (std::size_t i = 0; i < us.size(); ++i) us[i] = 2e-5 * a[i] - 1e-3 * b[i];
  const auto clipped = fit_nonnegative({ones, a, b}, us);
  CHECK(clipped[2] == 0);
  CHECK(clipped[1] > 0);
  // Against a slow search: no other non-negative pair does better.
  const auto loss = [&](double x, double y) {
    double sum = 0;
    for (std::size_t i = 0; i < us.size(); ++i) {
      const double error = (x + y * a[i]) / us[i] - 1;
      sum += error * error;
    }
    return sum;
  };
  for (double x = 0; x < 5; x += 0.25) {
    for (double y = 1.5e-5; y < 2.5e-5; y += 2e-7) {
      CHECK(loss(clipped[0], clipped[1]) <= loss(x, y) + 1e-12);
    }
  }
  // Two equal columns are one.
  CHECK(fit_nonnegative({a, a}, a)[0] == Approx(1));
}

TEST_CASE("a line of offset and rate is recovered, the offset never negative", "[calibrate]") {
  const Line line = fit_line({1000, 2000, 8000}, {12, 14, 26});
  CHECK(line.t0_us == Approx(10));
  CHECK(line.rate == Approx(500));
  CHECK(line.at(4000) == Approx(18));
  const Line through = fit_line({10, 20, 40}, {0.9, 2, 4.4});
  CHECK(through.t0_us == Approx(0));
  CHECK(through.at(20) == Approx(2).epsilon(0.1));
  CHECK(fit_line({10, 20}, {5, 5}).at(1e6) == Approx(5).epsilon(0.01));
}

TEST_CASE("a summary is made of every pass, the spread of all samples", "[calibrate]") {
  const Summary s = summarise({{10, 10, 10}, {12, 12, 12}});
  CHECK(s.us == 10);
  CHECK(s.passes == 2);
  CHECK(s.samples == 6);
  CHECK(s.p90 == 12);
  CHECK(s.spread == Approx(2.0 / 11));
  CHECK(summarise({{7}}).us == 7);
  CHECK(summarise({{7}}).p90 == 7);
  CHECK(summarise({}).samples == 0);
  CHECK(summarise({{}, {3, 1}}).least == 1);
}

TEST_CASE("three terms are told apart from noisy times", "[calibrate]") {
  std::vector<double> ones(60, 1.0), bytes, rows, us;
  for (std::uint64_t i = 0; i < 60; ++i) {
    bytes.push_back(1e5 + 1e7 * random_unit(1, i));
    rows.push_back(100 + 1e4 * random_unit(2, i));
    const double noise = 1 + 0.02 * (random_unit(3, i) - 0.5);
    us.push_back((3 + 1e-5 * bytes.back() + 2e-3 * rows.back()) * noise);
  }
  const auto c = fit_nonnegative({ones, bytes, rows}, us);
  CHECK(c[0] == Approx(3).epsilon(0.15));
  CHECK(c[1] == Approx(1e-5).epsilon(0.02));
  CHECK(c[2] == Approx(2e-3).epsilon(0.02));
}

TEST_CASE("relative errors count: a small size is fitted as well as a large one", "[calibrate]") {
  std::vector<double> sizes, us;
  for (double size = 1e3; size <= 1e9; size *= 10) {
    sizes.push_back(size);
    us.push_back(4 + size / 1e4);
  }
  const Line line = fit_line(sizes, us);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    CHECK(line.at(sizes[i]) == Approx(us[i]).epsilon(1e-3));
  }
}

TEST_CASE("a slowing of less than one per cent is none", "[calibrate]") {
  std::vector<double> at, us;
  for (int i = 0; i < 300; ++i) {
    at.push_back(0.01 * i);
    us.push_back(100.5 - 0.5 * std::exp(-at.back() / 0.2));
  }
  CHECK_FALSE(fit_sustained(at, us).slows);
  for (double& t : us) t = 100 + 6 * (t - 100);
  const Sustained s = fit_sustained(at, us);
  CHECK(s.slows);
  CHECK(s.hot_us == Approx(103).epsilon(0.005));
  CHECK(s.time_constant_s == Approx(0.2).epsilon(0.15));
}
