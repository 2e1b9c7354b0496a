#include "cost/smooth_max.hpp"

#include <cmath>

#include "core/rng.hpp"
#include "support/catch.hpp"

using namespace servesim;

TEST_CASE("the tabulated smooth maximum follows its formula", "[cost]") {
  for (const double q : {1.5, 1.77, 3.55, 8.0}) {
    const SmoothMax smooth_max(q);
    Rng rng(1, "smooth_max");
    for (int i = 0; i < 2000; ++i) {
      const double a = std::exp(4 * rng.normal());
      const double b = std::exp(4 * rng.normal());
      const double exact = std::pow(std::pow(a, q) + std::pow(b, q), 1 / q);
      INFO(q << " " << a << " " << b);
      REQUIRE(smooth_max(a, b) == Approx(exact).epsilon(1e-6));
      REQUIRE(smooth_max(a, b) == smooth_max(b, a));
      REQUIRE(smooth_max.share(a, b) + smooth_max.share(b, a) == Approx(1));
      const double share = 1 / (1 + std::pow(b / a, q));
      REQUIRE(smooth_max.share(a, b) == Approx(share).margin(1e-5));
    }
  }
}

TEST_CASE("the smooth maximum at its edges", "[cost]") {
  const SmoothMax smooth_max(2);
  CHECK(smooth_max(0, 0) == 0);
  CHECK(smooth_max(3, 0) == 3);
  CHECK(smooth_max(0, 3) == 3);
  CHECK(smooth_max(1, 1) == Approx(std::sqrt(2.0)));
  CHECK(smooth_max.share(0, 0) == 0);
  CHECK(smooth_max.share(1, 0) == 1);
}

TEST_CASE("the smooth maximum rises in both arguments", "[cost]") {
  const SmoothMax smooth_max(1.77);
  double last = 0;
  for (int i = 0; i < 20000; ++i) {
    const double value = smooth_max(1.0, i * 1e-3);
    REQUIRE(value >= last);
    last = value;
  }
}
