/// Does a capacity search find what a look at every step finds?
#include <cmath>
#include <set>

#include "core/rng.hpp"
#include "study/capacity.hpp"
#include "study/rate_grid.hpp"
#include "support/catch.hpp"

namespace servesim {
namespace {

/// The highest step of a monotone target, by looking at all; below the lowest: none.
int brute_force(int low, int high, int threshold) {
  int best = low - 1;
  for (int step = low; step <= high; ++step) {
    if (step <= threshold) best = step;
  }
  return best;
}

}  // namespace

TEST_CASE("a search finds the threshold wherever it starts") {
  Rng rng(1, "test.capacity");
  for (int round = 0; round < 3000; ++round) {
    const int low = -static_cast<int>(rng.below(50));
    const int high = low + 1 + static_cast<int>(rng.below(300));
    const int threshold = low - 3 + static_cast<int>(rng.below(310));
    CapacityRange range{low, high, low - 5 + static_cast<int>(rng.below(320)),
                        1 + static_cast<int>(rng.below(64))};
    range.looks = static_cast<int>(rng.below(6));
    range.look_stride = 1 + static_cast<int>(rng.below(3));
    std::set<int> asked;
    const Capacity found = find_capacity(range, [&](int step) {
      CHECK(step >= low);
      CHECK(step <= high);
      CHECK(asked.insert(step).second);
      return step <= threshold;
    });
    INFO("range " << low << " to " << high << ", threshold " << threshold << ", start "
                  << range.start);
    const int best = brute_force(low, high, threshold);
    CHECK(found.probes == static_cast<int>(asked.size()));
    if (best < low) {
      CHECK(found.status == CapacityStatus::kUnmet);
    } else if (best == high) {
      CHECK(found.status == CapacityStatus::kUnbounded);
    } else {
      CHECK(found.status == CapacityStatus::kFound);
      CHECK(found.step == best);
    }
  }
}

TEST_CASE("a start at the answer costs two looks, and those ahead") {
  const auto meets = [](int step) { return step <= 40; };
  CHECK(find_capacity({0, 100, 40, 1}, meets).probes == 2);
  CHECK(find_capacity({0, 100, 40, 1, 5}, meets).probes == 6);
  CHECK(find_capacity({0, 100, 40, 1, 5, 10}, meets).probes == 7);
  CHECK(find_capacity({0, 42, 40, 1, 5}, meets).probes == 3);
}

TEST_CASE("whatever the target, the answer meets it and its neighbours above do not") {
  Rng rng(2, "test.capacity");
  for (int round = 0; round < 2000; ++round) {
    std::vector<bool> meets(200);
    for (std::size_t i = 0; i < meets.size(); ++i) {
      const double slope = 1 / (1 + std::exp((static_cast<double>(i) - 100) / 5));
      meets[i] = rng.uniform() < slope;
    }
    meets[0] = true;
    meets.back() = false;
    const auto at = [&meets](int step) { return meets[static_cast<std::size_t>(step)]; };
    const Capacity found =
        find_capacity({0, 199, static_cast<int>(rng.below(200)), 1 + round % 9, 5}, at);
    REQUIRE(found.status == CapacityStatus::kFound);
    CHECK(at(found.step));
    for (const int ahead : {1, 2, 3, 4, 5}) {
      if (found.step + ahead < 200) CHECK_FALSE(at(found.step + ahead));
    }
  }
}

TEST_CASE("a step that meets the target alone is found when it is near enough") {
  for (const int alone : {42, 43, 45, 46}) {
    const auto meets = [alone](int step) { return step <= 40 || step == alone; };
    for (const int start : {0, 40, 100}) {
      INFO("alone at " << alone << ", start " << start);
      CHECK(find_capacity({0, 100, start, 8, 5}, meets).step == (alone <= 45 ? alone : 40));
    }
  }
}

TEST_CASE("the rates of a grid are near each other, short, and found again") {
  for (const double tolerance : {0.001, 0.01, 0.1, 0.5}) {
    const RateGrid grid(tolerance);
    const int last = 6 * grid.steps_per_decade();
    for (int k = -3 * grid.steps_per_decade(); k < last; k += 1 + last / 1000) {
      const double here = grid.rate(k);
      const double next = grid.rate(k + 1);
      CHECK(next > here);
      CHECK(next / here < 1 + tolerance + 2e-4);
      CHECK(grid.text(k).size() <= 9);
      CHECK(grid.text(k).find('e') == std::string::npos);
      CHECK(grid.floor(here) == k);
      CHECK(grid.floor(here * (1 + tolerance / 100)) == k);
    }
    CHECK(grid.text(0) == "1");
    CHECK(grid.text(grid.steps_per_decade()) == "10");
    CHECK(grid.text(-3 * grid.steps_per_decade()) == "0.001");
    CHECK(grid.text(last) == "1000000");
  }
}

}  // namespace servesim
