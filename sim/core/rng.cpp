#include "core/rng.hpp"

#include <xxhash.h>

#include <bit>
#include <cmath>
#include <numbers>

namespace servesim {

Rng::Rng(std::uint64_t seed, std::string_view name) {
  std::uint64_t x = XXH3_64bits_withSeed(name.data(), name.size(), seed);
  for (std::uint64_t& word : state_) {  // splitmix64, the seeding its authors recommend
    x += 0x9e3779b97f4a7c15ULL;
    std::uint64_t z = x;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    word = z ^ (z >> 31);
  }
}

std::uint64_t Rng::next() {
  const std::uint64_t result = std::rotl(state_[0] + state_[3], 23) + state_[0];
  const std::uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

double Rng::uniform() {
  return static_cast<double>(next() >> 11) * 0x1.0p-53;
}

std::uint64_t Rng::below(std::uint64_t n) {
  const std::uint64_t limit = ~std::uint64_t{0} - ~std::uint64_t{0} % n;
  std::uint64_t draw = next();
  while (draw >= limit) draw = next();
  return draw % n;
}

double Rng::exponential() {
  return -std::log(uniform_positive());
}

double Rng::normal() {
  const double radius = std::sqrt(-2.0 * std::log(uniform_positive()));
  return radius * std::cos(2.0 * std::numbers::pi * uniform());
}

double Rng::gamma(double shape) {
  if (shape < 1.0) return gamma(shape + 1.0) * std::pow(uniform_positive(), 1.0 / shape);
  const double d = shape - 1.0 / 3.0;
  const double c = 1.0 / std::sqrt(9.0 * d);
  while (true) {
    const double x = normal();
    const double v = std::pow(1.0 + c * x, 3.0);
    if (v <= 0.0) continue;
    if (std::log(uniform_positive()) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
  }
}

}  // namespace servesim
