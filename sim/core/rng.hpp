/// Named random streams: every consumer draws from its own, so that adding one never shifts
/// another's draws.
#pragma once

#include <cstdint>
#include <string_view>

namespace servesim {

/// A xoshiro256++ generator (Blackman and Vigna, 2019) with the few distributions the project
/// needs. Its draws are the same with every compiler, which the standard library's distributions do
/// not promise.
class Rng {
 public:
  /// The stream `name` of the run's `seed`.
  Rng(std::uint64_t seed, std::string_view name);

  std::uint64_t next();
  /// Uniform in [0, 1).
  double uniform();
  /// Uniform in (0, 1]: safe to take a logarithm of.
  double uniform_positive() { return 1.0 - uniform(); }
  /// Uniform in [0, n). REQUIRES: n > 0.
  std::uint64_t below(std::uint64_t n);
  /// Exponential with mean 1.
  double exponential();
  double normal();
  /// Gamma with the given shape and scale 1 (Marsaglia and Tsang, 2000). REQUIRES: shape > 0.
  double gamma(double shape);

 private:
  std::uint64_t state_[4];
};

}  // namespace servesim
