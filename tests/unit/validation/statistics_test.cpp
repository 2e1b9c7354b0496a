#include "validation/statistics.hpp"

#include "support/catch.hpp"

using namespace servesim;

TEST_CASE("percentiles follow numpy's linear rule", "[validation]") {
  CHECK(percentile({4, 1, 3, 2}, 50) == Approx(2.5));
  CHECK(percentile({4, 1, 3, 2}, 0) == 1);
  CHECK(percentile({4, 1, 3, 2}, 100) == 4);
  CHECK(percentile({7}, 99) == 7);
  CHECK(percentile({1, 2, 3, 4, 5}, 90) == Approx(4.6));
}

TEST_CASE("rank correlation", "[validation]") {
  CHECK(rank_correlation({1, 2, 3, 4}, {10, 20, 30, 1000}) == Approx(1));
  CHECK(rank_correlation({1, 2, 3, 4}, {4, 3, 2, 1}) == Approx(-1));
  CHECK(rank_correlation({1, 2, 2, 3}, {1, 2, 2, 3}) == Approx(1));
  CHECK(rank_correlation({1, 1}, {1, 2}) == 0);
}

TEST_CASE("mean of nothing is 0", "[validation]") {
  CHECK(mean({}) == 0);
  CHECK(mean({1, 2, 6}) == 3);
}
