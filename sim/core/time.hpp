/// Simulated time: an integer count of nanoseconds, used both for instants and for durations.
#pragma once

#include <cmath>
#include <compare>
#include <cstdint>
#include <limits>

namespace servesim {

/// Nanoseconds since the start of the simulation, or between two instants.
class SimTime {
 public:
  constexpr SimTime() = default;
  constexpr explicit SimTime(std::int64_t ns) : ns_(ns) {}

  static constexpr SimTime max() { return SimTime(std::numeric_limits<std::int64_t>::max()); }
  static constexpr SimTime from_us(std::int64_t us) { return SimTime(us * 1000); }
  static constexpr SimTime from_ms(std::int64_t ms) { return SimTime(ms * 1'000'000); }
  /// Rounds to the nearest nanosecond. REQUIRES: |seconds| < 9.2e9.
  static SimTime from_seconds(double seconds) { return SimTime(std::llround(seconds * 1e9)); }

  constexpr std::int64_t ns() const { return ns_; }
  constexpr double ms() const { return static_cast<double>(ns_) * 1e-6; }
  constexpr double seconds() const { return static_cast<double>(ns_) * 1e-9; }

  constexpr auto operator<=>(const SimTime&) const = default;
  constexpr SimTime& operator+=(SimTime other) {
    ns_ += other.ns_;
    return *this;
  }
  constexpr SimTime& operator-=(SimTime other) {
    ns_ -= other.ns_;
    return *this;
  }
  friend constexpr SimTime operator+(SimTime a, SimTime b) { return SimTime(a.ns_ + b.ns_); }
  friend constexpr SimTime operator-(SimTime a, SimTime b) { return SimTime(a.ns_ - b.ns_); }
  friend constexpr SimTime operator*(SimTime a, std::int64_t n) { return SimTime(a.ns_ * n); }

 private:
  std::int64_t ns_ = 0;
};

}  // namespace servesim
